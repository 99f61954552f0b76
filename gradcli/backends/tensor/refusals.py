"""Errors that a framework raises about the gradients that a rule returned: findings, not errors of the user's code."""

import re
from collections.abc import Callable

from gradcli.backends.attribution import users_frames
from gradcli.errors import UserCodeError, counted, message_of
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass

_SHAPE = re.compile(
    r"Function (?P<name>\w+?)(?:Backward)? returned an invalid gradient at index (?P<place>\d+) - "
    r"got (?P<got>\[[\d, ]*\]) but expected shape compatible with (?P<wanted>\[[\d, ]*\])"
)
_NUMBER = re.compile(
    r"function (?P<name>\w+?)(?:Backward)? returned an incorrect number of gradients "
    r"\(expected (?P<wanted>\d+), got (?P<got>\d+)\)"
)
_KIND = re.compile(r"expected Variable or None \(got (?P<got>[\w.]+)\)")
_UNNEEDED = re.compile(
    r"function (?P<name>\w+?)(?:Backward)? returned a gradient different from None at position (?P<place>\d+)"
)
_COMPLEX = re.compile(r"input_is_complex == grad_is_complex|expected a real gradient for a real input")
_JAX_SHAPE = re.compile(
    r"Custom VJP bwd rule (?:attached to .* )?must produce .* at output(?P<place>\S+) the bwd rule produced an output "
    r"of (?:type|shape/dtype) \w+(?P<got>\[[\d,]*\]) corresponding to an input of (?:type|shape/dtype) "
    r"\w+(?P<wanted>\[[\d,]*\])"
)
_JAX_STRUCTURE = re.compile(r"Custom VJP bwd rule (?:attached to .* )?must produce .* structure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The name of what is wrong with the gradients that a rule returned, and a sentence on it."""

    kind: FindingKind
    message: str


def _shape(found: re.Match[str], whose: str) -> Refusal:
    text = (
        f"{whose}the gradient that backward returns for tensor argument {found['place']} (counted from 0) has shape "
        f"{found['got']}, but the argument has shape {found['wanted']}"
    )
    return Refusal(kind=FindingKind.WRONG_SHAPE, message=text)


def _number(found: re.Match[str], whose: str) -> Refusal:
    got = counted(int(found["got"]), "gradient")
    text = f"{whose}backward returns {got}, expected {found['wanted']}: one for each argument"
    return Refusal(kind=FindingKind.WRONG_ARITY, message=text)


def _unneeded(found: re.Match[str], whose: str) -> Refusal:
    text = (
        f"{whose}backward returns a gradient for argument {int(found['place']) - 1} (counted from 0), which is "
        "not a tensor: return None for it"
    )
    return Refusal(kind=FindingKind.UNNEEDED_GRADIENT, message=text)


def _not_a_tensor(found: re.Match[str], _: str) -> Refusal:
    kind = FindingKind.WRONG_ARITY if found["got"] == "list" else FindingKind.WRONG_SHAPE
    text = f"backward returns a value of type {found['got']} where a tensor, None or a tuple of them is expected"
    return Refusal(kind=kind, message=text)


def _complex(_: re.Match[str], __: str) -> Refusal:
    text = "backward returns a complex gradient for a real input: return its real part"
    return Refusal(kind=FindingKind.WRONG_DTYPE, message=text)


def _shape_by_jax(found: re.Match[str], whose: str) -> Refusal | None:
    if found["got"] == found["wanted"]:
        return None
    text = (
        f"{whose}the gradient that bwd returns for "
        f"args{found['place']} has shape {_spaced(found['got'])}, but the argument has shape "
        f"{_spaced(found['wanted'])}"
    )
    return Refusal(kind=FindingKind.WRONG_SHAPE, message=text)


def _structure_by_jax(_: re.Match[str], whose: str) -> Refusal:
    text = f"{whose}bwd does not return a tuple with one gradient for each argument, of the argument's pytree structure"
    return Refusal(kind=FindingKind.WRONG_ARITY, message=text)


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Refusal | None]], ...] = (
    (_SHAPE, _shape),
    (_NUMBER, _number),
    (_UNNEEDED, _unneeded),
    (_KIND, _not_a_tensor),
    (_COMPLEX, _complex),
    (_JAX_SHAPE, _shape_by_jax),
    (_JAX_STRUCTURE, _structure_by_jax),
)


def refusal_of(error: UserCodeError, target: str | None = None, *, has_rule: bool = False) -> Refusal | None:
    """What is wrong with the returned gradients, from the framework's message; None if something else raised.

    `target` is the name of what is checked: a rule of another name is called inside it. JAX does not name the rule,
    which is the target's own one if it has one (`has_rule`). The messages are those of
    PyTorch 2.13, which the engine shares, and of JAX 0.4 to 0.10.
    """
    cause = error.__cause__
    if cause is None or error.phase != "backward" or users_frames(cause.__traceback__):
        return None
    for pattern, read in _READERS:
        found = pattern.search(message_of(cause))
        if found is None:
            continue
        if pattern in (_JAX_SHAPE, _JAX_STRUCTURE):
            whose = "" if has_rule else "in a custom_vjp function that the checked function calls, "
        else:
            whose = _whose(found.groupdict().get("name"), target)
        refusal = read(found, whose)
        if refusal is not None:
            return refusal
    return None


def _whose(name: str | None, target: str | None) -> str:
    return "" if name == target else f"in {name}, which the checked function calls, "


def _spaced(shape: str) -> str:
    return shape.replace(",", ", ")
