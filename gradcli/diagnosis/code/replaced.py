"""Whether a wrong gradient may be meant: documentation calls it a surrogate, or an argument serves backward alone."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradcli.backends.base import Subject
from gradcli.cases import Argument
from gradcli.edits.source import written
from gradcli.findings import SURROGATE_ADVICE, FindingKind
from gradcli.inputs.hints.documented_shapes import texts_of
from gradcli.results import Finding
from gradcli.sources import source_of
from gradcli.targets import TargetInfo

_SAID = re.compile(
    r"straight[-\s]?through|surrogate|\bSTE\b|gradient\s+reversal"
    r"|instead\s+of\s+(?:its|the)\s+(?:\w+\s+)?(?:derivative|gradient)\b"
    r"|(?:reverse|replace|model|scale)(?:s|d|l?ing)?\s+(?:the\s+|its\s+)?gradients?\b|scaling\s+gradients?\b"
    r"|approximat(?:e|es|ed|ing|ion\s+of|ion\s+to)\s+(?:the\s+|its\s+|an?\s+)?(?:gradient|derivative|backward)s?\b"
    r"|\bbut\s+(?:\w+\s+)?uses?\b[^.;]{1,40}\b(?:for|in)\s+(?:the\s+)?backward",
    re.IGNORECASE,
)
_CALLED = re.compile(r"STE(?![a-z])|(?i:straight_?through|surrogate|grad(?:ient)?_?(?:revers|scal)|revers\w*_?grad)")
_SMALL = re.compile(r"(?:^|_)(?:eps|epsilon|r?tol|atol|tiny)(?:$|_|\d)", re.IGNORECASE)
_KINDS = frozenset(
    {
        FindingKind.WRONG_FACTOR,
        FindingKind.WRONG_SIGN,
        FindingKind.MISSING_TERM,
        FindingKind.WRONG_ENTRIES,
        FindingKind.WRONG_GRADIENT,
    }
)


def perhaps_replaced(finding: Finding, subject: Subject) -> Finding:
    """The finding with the advice to declare a surrogate gradient, where this may be one; then without a correction.

    A correction would take away what such a Function is written for.
    """
    advised = SURROGATE_ADVICE in finding.message
    if not advised and (finding.kind not in _KINDS or not _may_be_meant(subject)):
        return finding
    message = finding.message if advised else f"{finding.message}; {SURROGATE_ADVICE}"
    return replace(finding, message=message, corrected=None)


def _may_be_meant(subject: Subject) -> bool:
    info = subject.info
    if _CALLED.search(info.name.rpartition(":")[2]) is not None:
        return True
    texts = [*texts_of(source_of(info.forward), info.documentation), *texts_of(source_of(info.backward), "")]
    return any(_SAID.search(text) for text in texts) or any(_serve_backward_alone(info, subject.arguments))


def _serve_backward_alone(info: TargetInfo, arguments: Sequence[Argument]) -> Iterator[bool]:
    """For each argument of real numbers, whether forward only saves it; a small number may avoid a division by 0."""
    forward = written(info.forward)
    if forward is None or isinstance(forward.node, ast.Lambda):
        return
    saved = list(_saved(forward.node))
    read = [n for n in ast.walk(forward.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    for argument in arguments:
        value = argument.value
        is_real = value.dtype.kind == "f" if argument.is_tensor else isinstance(value, float)
        if is_real and _SMALL.search(argument.name) is None:
            own = [n for n in read if n.id == argument.name]
            yield bool(own) and all(n in saved for n in own)


def _saved(forward: ast.FunctionDef) -> Iterator[ast.Name]:
    """The names that are saved as they are, in attributes of ctx that forward does not read, or by a call."""
    context = forward.args.args[0].arg if forward.args.args else ""
    of_context = [n for n in ast.walk(forward) if isinstance(n, ast.Attribute) and _is(n.value, context)]
    read = {n.attr for n in of_context if isinstance(n.ctx, ast.Load)}
    for node in ast.walk(forward):
        if isinstance(node, ast.Call) and node.func in of_context:
            yield from (n for n in node.args if isinstance(n, ast.Name))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            targets = [t for t in node.targets if t in of_context]
            if targets and not any(t.attr in read for t in targets if isinstance(t, ast.Attribute)):
                yield node.value


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
