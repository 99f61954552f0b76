"""What `gradcli check` was asked to do, as it was typed."""

from dataclasses import dataclass

from gradcli.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The settings of the run, and the texts of the options that are not settings."""

    settings: Settings
    targets: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    grad: str | None = None
    form: str | None = None
    reports: tuple[str, ...] = ()
    shard: str | None = None
    executor: str | None = None
    in_process: bool = False
    quiet: bool = False
    verbose: bool = False
