"""The mode that a check runs in: graphs are recorded, whatever mode the caller of the checker is in."""

import contextlib
import sys
from collections.abc import Iterator

_FRAMEWORKS = ("torch", "gradcli.engine")


@contextlib.contextmanager
def graphs_recorded() -> Iterator[None]:
    """Leave `no_grad` and `inference_mode` of every loaded framework, and enter them again at the end.

    Tensors that are made in inference mode can never be part of a graph: switching recording on around each call of
    the user's code would not be enough.
    """
    with contextlib.ExitStack() as stack:
        for framework in [sys.modules[name] for name in _FRAMEWORKS if name in sys.modules]:
            if framework.is_inference_mode_enabled():
                stack.enter_context(framework.inference_mode(False))
            if not framework.is_grad_enabled():
                stack.enter_context(framework.enable_grad())
        yield
