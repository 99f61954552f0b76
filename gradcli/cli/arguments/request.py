"""What `gradcli check` was asked to do, as it was typed."""

from collections.abc import Mapping
from typing import Any

from gradcli.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The settings that were given, by their names in `Settings`, and the options that are not settings."""

    options: Mapping[str, Any]
    targets: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    grad: str | None = None
    saved: tuple[str, ...] = ()
    form: str | None = None
    reports: tuple[str, ...] = ()
    shard: str | None = None
    executor: str | None = None
    in_process: bool = False
    keyword: str | None = None
    tags: tuple[str, ...] = ()
    last_failed: bool = False
    failed_first: bool = False
    cache: bool = False
    quiet: bool = False
    verbose: bool = False


_SETTINGS = (
    "order",
    "seed",
    "samples",
    "dtype",
    "device",
    "triton",
    "require_resolution",
    "timeout",
    "budget",
    "jobs",
    "fail_fast",
    "allow_inconclusive",
)
"""Parameters of the command that are settings of the same name."""


def names_from(text: str | None) -> tuple[str, ...]:
    """The names in a list with commas; none where nothing was given."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def request_from(given: Mapping[str, Any]) -> CheckRequest:
    """The request that the parameters of `gradcli check` make, by their names; None is one that was not given."""
    options = {name: given[name] for name in _SETTINGS}
    return CheckRequest(
        options={**options, "only": tuple(given["only"] or ()) or None, "skip": tuple(given["skip"] or ()) or None},
        targets=tuple(given["targets"] or ()),
        inputs=tuple(given["inputs"] or ()),
        arguments=tuple(given["arguments"] or ()),
        grad=given["grad"],
        saved=names_from(given["saved"]),
        form=given["form"],
        reports=tuple(given["report"] or ()),
        shard=given["shard"],
        executor=given["executor"],
        in_process=given["in_process"],
        quiet=given["quiet"],
        verbose=given["verbose"],
        keyword=given["keyword"],
        tags=tuple(given["tag"] or ()),
        last_failed=given["last_failed"],
        failed_first=given["failed_first"],
        cache=given["cache"],
    )
