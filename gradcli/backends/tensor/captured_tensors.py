"""The caller's own tensors, changed in place if forward reads them from elsewhere than its arguments.

`apply(x, module, *module.parameters())`: forward computes with the module's parameters, and those passed are there for
backward. Copies passed in their place would not change what forward computes, so the parameters themselves are changed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.backends.tensor.closures import Lifted
from gradcli.backends.tensor.framework import Framework
from gradcli.cases import Argument
from gradcli.errors import OverrunError, UserCodeError

Own = Mapping[int, Any]
"""Tensors of the caller's, by the positions at which they were given."""
_FACTOR, _SHIFT = 1 + 2.0**-4, 2.0**-6
_SAME = 1e-9
"""What is the same but for the order of sums; a moved input changes it by percents."""


@final
class OwnCall:
    """Calls a function with the caller's own tensors, which hold the values passed in their places for that time."""

    def __init__(self, framework: Framework, function: Callable[..., Any], arguments: Sequence[Argument], own: Own):
        self.names = tuple(arguments[position].name for position in sorted(own))
        self._framework, self._function, self._own = framework, function, dict(sorted(own.items()))
        self._keys: list[int | str] = []
        for argument in arguments:
            self._keys.append(argument.name if argument.keyword else sum(isinstance(k, int) for k in self._keys))
        self._others = [i for i, a in enumerate(arguments) if a.is_tensor and a.requires_grad and i not in own]

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run with these values; the caller's tensors are restored afterwards, whatever happens."""
        given: dict[int | str, Any] = dict(enumerate(arguments))
        given.update(keywords)

        def function(*others: Any) -> Any:
            changed = dict(zip(self._others, others, strict=True)) | self._own
            whole = {**given, **{self._keys[position]: value for position, value in changed.items()}}
            named = {key: value for key, value in whole.items() if isinstance(key, str)}
            return self._function(*(whole[place] for place in range(len(arguments))), **named)

        values = [given[self._keys[position]] for position in (*self._own, *self._others)]
        return Lifted(self._framework.namespace, list(self._own.values()), function)(*values)


def bound_to_own(make: Callable[[Own], Subject], candidates: Own) -> Subject:
    """The subject that `make` binds to copies, or to those of the caller's tensors that forward or backward reaches.

    Whether it does shows when they are moved while the copies stay: the outputs or gradients change. Where forward or
    backward raises with copies, the caller's tensors take their place if both run with those: a backward that raises
    with either is at fault itself. A tensor whose entries share memory cannot be moved entry by entry.

    Raises:
        UserCodeError: forward raises with copies and with the caller's own tensors.
    """
    candidates = {position: tensor for position, tensor in candidates.items() if not _shares_memory(tensor)}
    if not candidates:
        return make({})
    try:
        subject = make({})
    except UserCodeError:
        return make(candidates)
    try:
        before = None if subject.is_alike_while(_moved(candidates)) else _outputs_and_gradients(subject)
    except OverrunError:  # it takes too long to be called for this, which says nothing of copies
        return subject
    except UserCodeError:
        return _running(make, candidates) or subject
    if before is None or _moved_alike(subject, candidates, before):
        return subject
    single = {i: own for i, own in candidates.items() if not _moved_alike(subject, {i: own}, before)}
    return make(single or candidates)


def _running(make: Callable[[Own], Subject], candidates: Own) -> Subject | None:
    """The subject bound to the caller's own tensors, where forward and backward run with them."""
    try:
        _outputs_and_gradients(subject := make(candidates))
    except UserCodeError:
        return None
    return subject


def _shares_memory(tensor: Any) -> bool:
    """Whether an axis repeats the same entries, as expand makes it."""
    return any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True))


def _moved_alike(subject: Subject, own: Own, before: list[NDArray[Any]]) -> bool:
    """Whether the outputs and gradients stay the same when the caller's tensors are moved in place."""
    try:
        with _moved(own):
            after = _outputs_and_gradients(subject)
    except OverrunError:
        return True
    except UserCodeError:
        return False
    return len(before) == len(after) and all(
        np.array_equal(one, other)
        or (one.shape == other.shape and np.allclose(one, other, rtol=_SAME, atol=0.0, equal_nan=True))
        for one, other in zip(before, after, strict=True)
    )


@contextmanager
def _moved(own: Own) -> Any:
    before = {position: tensor.data.clone() for position, tensor in own.items()}
    try:
        for tensor in own.values():
            tensor.data.mul_(_FACTOR).add_(_SHIFT)
        yield
    finally:
        for position, tensor in own.items():
            tensor.data.copy_(before[position])


def _outputs_and_gradients(subject: Subject) -> list[NDArray[Any]]:
    """The outputs that carry a gradient, and the gradients for cotangents of ones. Raises UserCodeError."""
    result = subject.call_at(subject.arguments, lambda outputs: [np.ones_like(output) for output in outputs])
    gradients = [np.zeros(0) if g is None else g for g in result.gradients or ()]
    return [*(result.outputs[n] for n in result.numbers), *gradients]
