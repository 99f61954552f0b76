"""Cells of recurrent networks: one step in time."""

from __future__ import annotations

import math

from gradcli.engine.creation import empty
from gradcli.engine.nn import init
from gradcli.engine.nn.functional import linear
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor


class _Cell(Module):
    """Weights of inputs and of the state, in so many gates.

    Args:
        input_size: features of an input.
        hidden_size: features of the state.
        bias: add two biases.
    """

    gates = 1

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size))
        self.weight_hh = Parameter(empty(rows, hidden_size))
        self.register_parameter("bias_ih", Parameter(empty(rows)) if bias else None)
        self.register_parameter("bias_hh", Parameter(empty(rows)) if bias else None)
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _start(self, input: Tensor) -> Tensor:
        return input.new_zeros((*input.shape[:-1], self.hidden_size))


class RNNCell(_Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh") -> None:
        super().__init__(input_size, hidden_size, bias)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state."""
        state = self._start(input) if hx is None else hx
        total = linear(input, self.weight_ih, self.bias_ih) + linear(state, self.weight_hh, self.bias_hh)
        return total.tanh() if self.nonlinearity == "tanh" else total.relu()


class LSTMCell(_Cell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), gates in the order i, f, g, o."""

    gates = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the next state and cell."""
        state, cell = (self._start(input), self._start(input)) if hx is None else hx
        total = linear(input, self.weight_ih, self.bias_ih) + linear(state, self.weight_hh, self.bias_hh)
        i, f, g, o = total.chunk(4, -1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell


class GRUCell(_Cell):
    """Gated recurrent unit (Cho et al., arXiv 1406.1078), gates in the order r, z, n."""

    gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state."""
        state = self._start(input) if hx is None else hx
        r_in, z_in, n_in = linear(input, self.weight_ih, self.bias_ih).chunk(3, -1)
        r_state, z_state, n_state = linear(state, self.weight_hh, self.bias_hh).chunk(3, -1)
        r, z = (r_in + r_state).sigmoid(), (z_in + z_state).sigmoid()
        n = (n_in + r * n_state).tanh()
        return (1 - z) * n + z * state
