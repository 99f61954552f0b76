"""The flags `-i NAME=SHAPE[,key=value]...` and `-a NAME=VALUE`, read into input specs."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from gradcli.cases import DTYPES, LAYOUTS, FrameworkObject, InputSpec, drawing_problem, shape_problem
from gradcli.errors import UsageError
from gradcli.inputs.domains import DOMAINS, Domain, parse_domain
from gradcli.sources import literal

_NAME = re.compile(r"^[^\W\d]\w*(\.\w+|\[\d+\]|\['[^']*'\]|\[\"[^\"']*\"\])*$")
_PARAMETERS = ("lo", "hi", "low", "high", "value", "path", "key")
KEYS = ("dtype", "domain", "layout", "grad", *_PARAMETERS)
_OPENING, _CLOSING = "([{", ")]}"


def parse_input(text: str) -> InputSpec:
    """The input that `-i text` describes.

    Args:
        text: `NAME=SHAPE[,key=value]...`, such as `x=20x30`, `x=scalar` or `idx=5,domain=indices,high=4`.

    Returns:
        A tensor spec.

    Raises:
        UsageError: says what is wrong with the text, with a close match for a misspelt key, domain or dtype.
    """
    name, rest = _named(text, "-i", "-i x=3x4")
    shape_text, *pairs = _split(rest)
    entries = [_pair(text, pair) for pair in pairs]
    given = dict(entries)
    if len(given) < len(entries):
        keys = [key for key, _ in entries]
        raise _refusal("-i", text, f"{max(keys, key=keys.count)} is given twice")
    domain, parameters = _domain(text, given)
    shape = _shape(text, shape_text, domain)
    problem = drawing_problem(domain.name, shape or (), parameters)
    if problem is not None:
        raise _refusal("-i", text, problem[1])
    return InputSpec(
        name=name,
        shape=shape,
        dtype=_dtype(text, given.get("dtype")),
        domain=domain.name,
        layout=_layout(text, given.get("layout")),
        parameters=tuple(parameters.items()),
        requires_grad=_grad(text, given.get("grad")),
        value=parameters.get("value"),
    )


def parse_argument(text: str) -> InputSpec:
    """The fixed argument that `-a text` gives.

    Args:
        text: `NAME=VALUE` with a Python literal, such as `dim=-1`, `bias=None` or `mode='sum'`, or with a framework's
            object, such as `dtype=torch.float64`.

    Returns:
        A value spec.

    Raises:
        UsageError: where the value is not a Python literal; says how to quote a string.
    """
    name, rest = _named(text, "-a", "-a dim=-1")
    try:
        value = literal(rest)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if (named := FrameworkObject.read(rest.strip())) is not None:
            return InputSpec(name=name, kind="value", value=named)
        close = {"none": "None", "null": "None", "true": "True", "false": "False"}.get(rest.strip().lower())
        if close is not None:
            raise _refusal("-a", text, f"{rest!r} is not a Python literal (did you mean {close}?)") from None
        if re.fullmatch(r"\s*[\w .:/+-]+\s*", rest):
            raise _refusal(
                "-a", text, f"{rest!r} is not a Python literal; quote a string: -a \"{name}='{rest.strip()}'\""
            ) from None
        raise _refusal(
            "-a", text, f"{rest!r} is not a Python literal: a number, True, None, 'text', or a list or tuple of them"
        ) from None
    return InputSpec(name=name, kind="value", value=value)


def _layout(text: str, layout: str | None) -> str | None:
    if layout is not None and layout not in LAYOUTS:
        raise _refusal(
            "-i",
            text,
            f"unknown layout {layout!r}{_did_you_mean(layout, LAYOUTS)}; expected one of {', '.join(LAYOUTS)}",
        )
    return layout


def _named(text: str, flag: str, example: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    name = name.strip()
    if not equals:
        raise _refusal(flag, text, f"expected NAME=..., as in {example}")
    if not _NAME.match(name):
        raise _refusal(flag, text, f"{name!r} is not a parameter name; expected one as in {example}")
    if not rest.strip():
        raise _refusal(flag, text, f"nothing follows '='; expected something as in {example}")
    return re.sub(r"\[\"([^\"]*)\"\]", r"['\1']", name), rest


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets, so that `open-interval(0,1)` and `value=[[1,2]]` stay whole."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _pair(text: str, pair: str) -> tuple[str, str]:
    key, equals, value = (part.strip() for part in pair.partition("="))
    if not equals:
        if re.fullmatch(r"\d+", key):
            raise _refusal("-i", text, f"sizes are joined by x, not by commas, as in 3x{key}")
        raise _refusal("-i", text, f"expected key=value after the shape, got {pair!r}; keys are {', '.join(KEYS)}")
    if key not in KEYS:
        raise _refusal("-i", text, f"unknown key {key!r}{_did_you_mean(key, KEYS)}; expected one of {', '.join(KEYS)}")
    if not value:
        raise _refusal("-i", text, f"nothing follows {key}=")
    return key, value


def _domain(text: str, given: dict[str, str]) -> tuple[Domain, dict[str, Any]]:
    named = given.get("domain", "literal" if "value" in given else "npz" if "path" in given else "normal")
    try:
        domain, parameters = parse_domain(named)
    except UsageError as error:
        raise UsageError(f"-i {text}: {error}") from None
    for key in _PARAMETERS:
        if key not in given:
            continue
        if key not in domain.parameters:
            takes = ", ".join(domain.parameters) or "no parameters"
            owners = ", ".join(each.name for each in DOMAINS.values() if key in each.parameters)
            raise _refusal("-i", text, f"domain {domain.name} takes {takes}, not {key} (which belongs to {owners})")
        parameters[key] = given[key] if key in ("path", "key") else _literal(text, key, given[key])
    return domain, parameters


def _literal(text: str, key: str, value: str) -> Any:
    try:
        parsed = literal(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise _refusal(
            "-i", text, f"{key}={value} is not a number{' or nested list of numbers' if key == 'value' else ''}"
        ) from None
    if key in ("low", "high") and (isinstance(parsed, bool) or not isinstance(parsed, int)):
        raise _refusal("-i", text, f"{key} must be a whole number, got {value}")
    if key in ("lo", "hi") and (isinstance(parsed, bool) or not isinstance(parsed, int | float)):
        raise _refusal("-i", text, f"{key} must be a number, got {value}")
    return parsed


def _shape(text: str, shape: str, domain: Domain) -> tuple[int, ...] | None:
    if shape == "scalar":
        return ()
    if not domain.random and shape in ("file", "any"):
        return None
    if re.fullmatch(r"[0-9]{1,12}([x×*][0-9]{1,12})*", shape):
        sizes = tuple(int(size) for size in re.split(r"[x×*]", shape))
        if (problem := shape_problem(sizes)) is not None:
            raise _refusal("-i", text, problem)
        return sizes
    if re.fullmatch(r"-\d+.*", shape):
        raise _refusal("-i", text, f"a size cannot be negative, got {shape!r}")
    if re.fullmatch(r"[\[(].*[\])]", shape):
        if re.fullmatch(r"[\[(][\d\s,]*[\])]", shape):
            written = "x".join(re.findall(r"\d+", shape)) or "scalar"
            raise _refusal("-i", text, f"write the shape as {written}, not {shape}")
        raise _refusal(
            "-i", text, f"give the shape and then the values, as in 2x3,value=[[1, 2, 3], [4, 5, 6]], not {shape}"
        )
    raise _refusal(
        "-i", text,
        f"{shape!r} is not a shape; expected sizes joined by x (20x30, 5, 0x3) or scalar; a fixed value is given by -a",
    )  # fmt: skip


def _dtype(text: str, dtype: str | None) -> str | None:
    if dtype is not None and dtype not in DTYPES:
        raise _refusal(
            "-i", text, f"unknown dtype {dtype!r}{_did_you_mean(dtype, DTYPES)}; expected one of {', '.join(DTYPES)}"
        )
    return dtype


def _grad(text: str, grad: str | None) -> bool | None:
    if grad is None:
        return None
    if grad.lower() not in ("true", "false"):
        raise _refusal("-i", text, f"grad must be true or false, got {grad!r}")
    return grad.lower() == "true"


def _did_you_mean(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word, known, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _refusal(flag: str, text: str, problem: str) -> UsageError:
    return UsageError(f"{flag} {text}: {problem}")
