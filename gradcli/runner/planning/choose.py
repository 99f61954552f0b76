"""Which cases of a run are wanted: by an expression over their ids, by tags, by what failed last time."""

import re
from collections.abc import Callable, Sequence

from gradcli.cases import CheckSpec
from gradcli.errors import NothingToCheckError, UsageError
from gradcli.frozen import dataclass

_TOKEN = re.compile(r"\s*(\(|\)|[^\s()]+)")
Test = Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was asked for: `keyword` is an expression as pytest's -k, `tags` are those of which a case has one.

    `failed` are the ids of the cases that failed last time, None where nobody asks; with `first` they are moved to the
    front instead of being the only ones.
    """

    keyword: str | None = None
    tags: tuple[str, ...] = ()
    failed: frozenset[str] | None = None
    first: bool = False


def chosen(specs: Sequence[CheckSpec], choice: Choice) -> tuple[CheckSpec, ...]:
    """The cases that fit; one whose target or spec has a problem is always kept, so that none is hidden.

    Raises:
        UsageError: the keyword expression is wrong, or no case has a tag that was asked for.
        NothingToCheckError: there are cases, and none fits.
    """
    known = {tag for spec in specs for tag in spec.tags}
    for tag in choice.tags:
        if tag not in known and all(spec.problem is None for spec in specs):
            listed = ", ".join(sorted(known)) or "none"
            raise UsageError(f"--tag {tag}: no case has this tag; tags of these cases: {listed}")
    fits = keyword_test(choice.keyword) if choice.keyword is not None else lambda _: True
    kept = [spec for spec in specs if spec.problem is not None or _is_wanted(spec, fits, choice)]
    if not kept:
        cases = "the only case does not match" if len(specs) == 1 else f"none of {len(specs)} cases matches"
        raise NothingToCheckError(f"nothing to check: {cases} {_described(choice)}")
    if choice.failed is not None and choice.first:
        failed = choice.failed
        kept.sort(key=lambda spec: spec.case_id not in failed)
    return tuple(kept)


def _is_wanted(spec: CheckSpec, fits: Test, choice: Choice) -> bool:
    if choice.tags and not set(choice.tags) & set(spec.tags):
        return False
    if choice.failed is not None and not choice.first and spec.case_id not in choice.failed:
        return False
    return fits(spec.case_id)


def _described(choice: Choice) -> str:
    parts = [f"-k {choice.keyword!r}"] if choice.keyword is not None else []
    parts += [f"--tag {tag}" for tag in choice.tags]
    parts += ["--last-failed"] if choice.failed is not None and not choice.first else []
    return " ".join(parts)


def keyword_test(expression: str) -> Test:
    """Whether an id fits `and`, `or`, `not`, parentheses and words, each of which has to occur in it, in any case.

    Raises:
        UsageError: the expression is wrong.
    """
    tokens = _TOKEN.findall(expression)
    test, rest = _either(expression, tokens)
    if rest:
        raise _wrong(expression, f"unexpected {rest[0]!r}")
    return test


def _either(expression: str, tokens: list[str]) -> tuple[Test, list[str]]:
    one, rest = _both(expression, tokens)
    while rest and rest[0] == "or":
        other, rest = _both(expression, rest[1:])
        one = _or(one, other)
    return one, rest


def _both(expression: str, tokens: list[str]) -> tuple[Test, list[str]]:
    one, rest = _single(expression, tokens)
    while rest and rest[0] == "and":
        other, rest = _single(expression, rest[1:])
        one = _and(one, other)
    return one, rest


def _single(expression: str, tokens: list[str]) -> tuple[Test, list[str]]:
    if not tokens or tokens[0] in ("and", "or", ")"):
        raise _wrong(
            expression, f"a word is missing before {tokens[0]!r}" if tokens else "a word is missing at the end"
        )
    head, rest = tokens[0], tokens[1:]
    if head == "not":
        test, rest = _single(expression, rest)
        return lambda text: not test(text), rest
    if head == "(":
        test, rest = _either(expression, rest)
        if not rest or rest[0] != ")":
            raise _wrong(expression, "a parenthesis is not closed")
        return test, rest[1:]
    word = head.lower()
    return lambda text: word in text.lower(), rest


def _or(one: Test, other: Test) -> Test:
    return lambda text: one(text) or other(text)


def _and(one: Test, other: Test) -> Test:
    return lambda text: one(text) and other(text)


def _wrong(expression: str, problem: str) -> UsageError:
    return UsageError(f"-k {expression!r}: {problem}; expected words combined with `and`, `or`, `not` and parentheses")
