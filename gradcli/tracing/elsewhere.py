"""Whether a traced program computes with another framework than the one whose graph is recorded."""

import functools
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, final

from gradcli.backends.owners import tensors_framework
from gradcli.errors import OtherFrameworkError
from gradcli.tracing.attributes import Patches
from gradcli.tracing.sites import of_user


@final
class Elsewhere:
    """Ends the program at a backward pass of another framework, before it has filled a gradient.

    Unless the recorded framework has run one: a program may use both.
    """

    def __init__(self, others: Mapping[str, ModuleType]) -> None:
        self._others = others
        self._found: str | None = None

    def install(self, patches: Patches, has_run: Callable[[], bool]) -> None:
        """Watch the passes of the other frameworks; `has_run` says whether the recorded one has run a pass."""
        for name, namespace in self._others.items():
            for owner in (namespace.Tensor, namespace.autograd):
                patches.everywhere(owner, "backward", self._ending(owner.backward, name, has_run))
            patches.everywhere(namespace.autograd, "grad", self._ending(namespace.autograd.grad, name, has_run))

    def _ending(self, original: Callable[..., Any], name: str, has_run: Callable[[], bool]) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(*args: Any, **keywords: Any) -> Any:
            if of_user(sys._getframe(1).f_code.co_filename) and not has_run():
                self._found = name
                raise _Ended
            return original(*args, **keywords)

        return watched

    def require_none(self, returned: object) -> None:
        """Where the recorded framework has neither run a pass nor `returned` a tensor, another one must not have.

        Raises:
            OtherFrameworkError: one has.
        """
        found = self._found or tensors_framework(returned)
        if found is not None:
            raise OtherFrameworkError(f"the traced program computes with {found}", found)


@final
class _Ended(BaseException):
    """Raised through the traced program, past its `except Exception`."""
