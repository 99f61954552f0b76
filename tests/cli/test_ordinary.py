"""What `gradcli check` reads without Typer means the same to Typer, and what is not plain is left to it."""

import random
from collections.abc import Iterator

import pytest
import typer.core
import typer.main

from gradcli.cli import pipeline
from gradcli.cli.app import application
from gradcli.cli.arguments.ordinary import FLAGS, OPTIONS, UNSET, ordinary_request
from gradcli.cli.arguments.request import CheckRequest

VALUES = {
    "inputs": ("x=3x4", "idx=5,domain=indices,high=4", "x=scalar"),
    "arguments": ("dim=-1", "mode='sum'", "bias=None"),
    "order": ("1", "2", "007", "0", "-1", "two"),
    "seed": ("0", "7", "1_0", "-3", "1e3"),
    "samples": ("3", "0", "3.0"),
    "require_resolution": ("1e-6", "0.5", "nan", "-1", ".5", "1E3"),
    "jobs": ("1", "2", "0", "all"),
    "timeout": ("2", "0.5", "1e3", "inf", "1e10", "soon"),
    "budget": ("30", "1.5", ""),
}
"""Values of options that are not just text, right ones and wrong ones."""
TEXTS = ("float32", "cpu", "gradient", "a:b", "not x", "1/2", "", "-v", "--", "-", "ä ö", "a=b")
PLAIN = (
    "gradcli.examples.cube:Cube",
    "specs file.py:Name -i x=3x4 -a dim=-1 -q",
    "m:F --order 2 --seed=7 --samples 1 --dtype float32 -j 2 --shard 1/3 --format json --report r.xml --report=r.md",
    "m:F --timeout 2.5 --budget 1e3 --require-resolution 1e-6 --only gradient --only forward --tag slow -k x -x -v",
    "",
)
LEFT = (
    "--help", "-h", "-qv", "-ix=3", "-i", "-j 0", "-j=2", "--seed -1", "--order two", "--timeout nan", "--verbos",
    "--format=", "-- m:F", "--only -x", "--quiet=1", "-", "--no-quiet",
)  # fmt: skip


@pytest.fixture(scope="module")
def command() -> "typer.core.TyperCommand":
    group = typer.main.get_command(application())
    return group.commands["check"]  # type: ignore[attr-defined]  # a group


@pytest.fixture
def read_by_typer(command, monkeypatch: pytest.MonkeyPatch):
    """The request that Typer makes of words; None where it refuses them."""

    def read(words: list[str]) -> CheckRequest | None:
        seen: list[CheckRequest] = []
        monkeypatch.setattr(pipeline, "check", lambda request: seen.append(request) or 0)
        try:
            command.main(args=words, prog_name="gradcli check", standalone_mode=False)
        except Exception:
            return None
        return seen[0] if seen else None

    return read


def test_the_table_has_typers_parameters(command) -> None:
    theirs = {name: parameter for parameter in command.params for name in parameter.opts}
    mine = {**{name: option.parameter for name, option in OPTIONS.items()}, **FLAGS}
    assert {name: theirs[name].name for name in mine} == mine
    assert set(theirs) - set(mine) == {"targets", "--help", "-h"} & set(theirs)
    for name, parameter in theirs.items():
        if name in mine:
            assert parameter.is_flag == (name in FLAGS), name
            assert parameter.multiple == (name in OPTIONS and OPTIONS[name].repeatable), name
            assert (parameter.default or None) == (UNSET[mine[name]] or None), name


@pytest.mark.parametrize("line", PLAIN)
def test_plain_words_are_read_without_typer(line: str, read_by_typer) -> None:
    words = line.split()
    request = ordinary_request(["check", *words])
    assert request is not None
    assert request == read_by_typer(words)


@pytest.mark.parametrize("line", LEFT)
def test_what_is_not_plain_is_left_to_typer(line: str) -> None:
    assert ordinary_request(["check", "m:F", *line.split()]) is None


@pytest.mark.parametrize("words", [[], ["--help"], ["list"], ["replay", "x.json"], ["--version", "check"]])
def test_other_commands_are_left_to_typer(words: list[str]) -> None:
    assert ordinary_request(words) is None


def words_at_random(generator: random.Random) -> Iterator[str]:
    for _ in range(generator.randint(0, 6)):
        kind = generator.random()
        if kind < 0.25:
            yield generator.choice(("m:F", "specs", "a.py:F", "", "-", "--"))
        elif kind < 0.45:
            yield generator.choice(sorted(FLAGS))
        else:
            name = generator.choice(sorted(OPTIONS))
            value = generator.choice(VALUES.get(OPTIONS[name].parameter, TEXTS))
            joined = f"{name}{generator.choice(('=', ''))}{value}"
            yield from (joined,) if generator.random() < 0.3 else (name, value)


def test_whatever_is_read_means_the_same_to_typer(read_by_typer) -> None:
    generator = random.Random(3)
    read = 0
    for _ in range(1500):
        words = list(words_at_random(generator))
        request = ordinary_request(["check", *words])
        if request is not None:
            read += 1
            assert request == read_by_typer(words), words
    assert read > 300
