"""Looking at the node of a Function's call: what it saved, what it keeps on ctx, what its backward returned."""

from typing import Any, final

from gradcli.backends.base import RawGradient
from gradcli.backends.call import Call
from gradcli.backends.framework import Framework


@final
class Inspector:
    """Reads the nodes of one Function class; of a plain callable there is none."""

    def __init__(self, framework: Framework, function_class: type | None) -> None:
        self._framework = framework
        self._class = function_class

    def node(self, call: Call) -> Any | None:
        """The node of the Function's own backward, None for a plain callable."""
        if self._class is None:
            return None
        for output in call.outputs:
            if self._framework.is_tensor(output):
                node: Any = output.grad_fn
                if node is not None and getattr(type(node), "_forward_cls", None) is self._class:
                    return node
        return None

    def saved(self, node: Any) -> tuple[Any, ...]:
        """The saved tensors. Raises RuntimeError where one of them was changed in place since."""
        return tuple(t for t in node.saved_tensors if self._framework.is_tensor(t))

    def strangers(self, call: Call, node: Any | None) -> tuple[int, ...]:
        """Numbers of saved floating tensors that are neither inputs nor outputs: they pass no gradient on."""
        if node is None:
            return ()
        try:
            saved = tuple(node.saved_tensors)
        except RuntimeError:
            # Changed in place since it was saved: backward itself will say so.
            return ()
        return tuple(number for number, tensor in enumerate(saved) if self._is_stranger(call, tensor))

    def context_tensors(self, call: Call, node: Any | None) -> tuple[str, ...]:
        """Attributes of ctx that hold a floating tensor computed inside forward."""
        if node is None:
            return ()
        return tuple(name for name, value in vars(node).items() if self._is_stranger(call, value))

    def raw(self, value: Any) -> RawGradient:
        """One value that backward returned, described."""
        if value is None or not self._framework.is_tensor(value):
            return RawGradient(
                is_none=value is None,
                is_tensor=False,
                shape=None,
                dtype=None,
                value=None,
                type_name=type(value).__name__,
            )
        array = self._framework.to_array(value)
        return RawGradient(
            is_none=False,
            is_tensor=True,
            shape=array.shape,
            dtype=self._framework.dtype_name(value),
            value=array,
            type_name=type(value).__name__,
        )

    def _is_stranger(self, call: Call, tensor: Any) -> bool:
        """Whether a tensor carries numbers of forward's input but no graph back to it."""
        if not self._framework.is_tensor(tensor) or not self._framework.is_differentiable(tensor):
            return False
        return not tensor.requires_grad and not any(tensor is passed for passed in call.passed)
