"""What a framework refuses of what a rule inside the target returned: a finding, not an error of the user's code."""

import re
from dataclasses import dataclass

from gradcli.backends.guard import users_frames
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind

_SHAPE = re.compile(
    r"Function (?P<name>\w+?)(?:Backward)? returned an invalid gradient at index (?P<place>\d+) - "
    r"got (?P<got>\[[\d, ]*\]) but expected shape compatible with (?P<wanted>\[[\d, ]*\])"
)
_NUMBER = re.compile(
    r"function (?P<name>\w+?)(?:Backward)? returned an incorrect number of gradients "
    r"\(expected (?P<wanted>\d+), got (?P<got>\d+)\)"
)
_JAX_SHAPE = re.compile(
    r"Custom VJP bwd rule must produce .* at output(?P<place>\S+) the bwd rule produced an output of "
    r"(?:type|shape/dtype) \w+(?P<got>\[[\d,]*\]) corresponding to an input of (?:type|shape/dtype) "
    r"\w+(?P<wanted>\[[\d,]*\])"
)
_JAX_STRUCTURE = re.compile(r"Custom VJP bwd rule must produce .* structure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The name of what is wrong with the gradients that a rule returned, and a sentence on it."""

    kind: FindingKind
    message: str


def refusal_of(error: UserCodeError) -> Refusal | None:
    """What the framework refused, by its message; None where the user's code, or anything else, raised.

    The messages are those of PyTorch 2.13, which the engine shares, and of JAX 0.4 to 0.10.
    """
    cause = error.__cause__
    if cause is None or error.phase != "backward" or users_frames(cause.__traceback__):
        return None
    text = str(cause)
    if found := _SHAPE.search(text):
        return Refusal(
            kind=FindingKind.WRONG_SHAPE,
            message=f"{found['name']}, which is called inside: the gradient that its backward returns for its tensor "
            f"argument number {int(found['place']) + 1} has shape {found['got']}, the argument has {found['wanted']}",
        )
    if found := _NUMBER.search(text):
        return Refusal(
            kind=FindingKind.WRONG_ARITY,
            message=f"{found['name']}, which is called inside: its backward returns {found['got']} gradients, "
            f"{found['wanted']} are expected",
        )
    if (found := _JAX_SHAPE.search(text)) and found["got"] != found["wanted"]:
        return Refusal(
            kind=FindingKind.WRONG_SHAPE,
            message=f"a custom_vjp function that is called inside: the gradient that its bwd returns for "
            f"args{found['place']} has shape {_spaced(found['got'])}, the argument has {_spaced(found['wanted'])}",
        )
    if _JAX_STRUCTURE.search(text):
        return Refusal(
            kind=FindingKind.WRONG_ARITY,
            message="a custom_vjp function that is called inside: its bwd does not return a tuple with one gradient "
            "for each argument, of the argument's structure",
        )
    return None


def _spaced(shape: str) -> str:
    return shape.replace(",", ", ")
