"""Recurrent networks: cells, which compute one time step, and layers of cells."""

from __future__ import annotations

import math
from typing import Any

from gradcli.engine.creation import empty
from gradcli.engine.nn import init
from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.functional import dropout, linear
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.ops.joining import cat, stack
from gradcli.engine.tensor import Tensor


class _Cell(Module):
    """The weights of a cell: `gates` blocks of hidden_size rows.

    Args:
        input_size: features of an input.
        hidden_size: features of the state.
        bias: add two biases, bias_ih and bias_hh.
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
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it; [N, input_size] gives [N, hidden_size]."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh") -> None:
        super().__init__(input_size, hidden_size, bias)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state; it starts from zeros unless given."""
        state = self._start(input) if hx is None else hx
        total = linear(input, self.weight_ih, self.bias_ih) + linear(state, self.weight_hh, self.bias_hh)
        return total.tanh() if self.nonlinearity == "tanh" else total.relu()


class LSTMCell(_Cell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); the gates are in the order i, f, g, o."""

    gates = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the next state h and cell c; they start from zeros unless given."""
        state, cell = (self._start(input), self._start(input)) if hx is None else hx
        total = linear(input, self.weight_ih, self.bias_ih) + linear(state, self.weight_hh, self.bias_hh)
        i, f, g, o = total.chunk(4, -1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell


class GRUCell(_Cell):
    """Gated recurrent unit (Cho et al., arXiv 1406.1078); the gates are in the order r, z, n.

    As in PyTorch, the reset gate is applied after the product: n = tanh(W_in x + b_in + r * (W_hn h + b_hn)).
    """

    gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state."""
        state = self._start(input) if hx is None else hx
        r_in, z_in, n_in = linear(input, self.weight_ih, self.bias_ih).chunk(3, -1)
        r_state, z_state, n_state = linear(state, self.weight_hh, self.bias_hh).chunk(3, -1)
        r, z = (r_in + r_state).sigmoid(), (z_in + z_state).sigmoid()
        n = (n_in + r * n_state).tanh()
        return (1 - z) * n + z * state


class _Layers(Module):
    """Layers of cells, applied along time.

    Args:
        input_size: features of an input.
        hidden_size: features of the state.
        num_layers: the number of layers; each takes the states of the one before as its inputs.
        bias: add two biases in each cell.
        batch_first: inputs and outputs are [N, T, F], not [T, N, F].
        dropout: the probability with which a state is dropped between layers in training.
        bidirectional: give each layer a second cell that runs backwards in time, and concatenate the states.
    """

    cell: type[_Cell] = RNNCell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        for what, size in (("hidden_size", hidden_size), ("num_layers", num_layers)):
            if size <= 0:
                raise ValueError(f"{what} must be greater than zero")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        directions = 2 if bidirectional else 1
        for name in self._ends():
            layer = int(name[2:].split("_")[0])
            features = input_size if layer == 0 else hidden_size * directions
            for key, value in self._new_cell(features).named_parameters():
                self.register_parameter(key + name, value)

    def _new_cell(self, features: int) -> _Cell:
        return self.cell(features, self.hidden_size, self.bias)

    def _ends(self) -> list[str]:
        """Return the suffixes of the parameter names of each cell, as "_l0_reverse", in the order of the states."""
        ways = ("", "_reverse") if self.bidirectional else ("",)
        return [f"_l{layer}{way}" for layer in range(self.num_layers) for way in ways]

    def _cell_of(self, name: str) -> Any:
        """Return a cell with the parameters of a suffix."""
        cell = self._new_cell(1)
        for key in cell._parameters:
            cell._parameters[key] = self._parameters.get(key + name)
        return cell

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Return the states of the last layer at all times, [T, N, H or 2 H], and the final states of all layers.

        Args:
            input: [T, N, F], [N, T, F] with `batch_first`, or [T, F].
            hx: the initial states, [layers * directions, N, H]; of an LSTM a pair (h, c); zeros unless given.
        """
        kinds = input.dtype, next(self.parameters()).dtype
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"RNN input dtype ({kinds[0]}) does not match weight dtype ({kinds[1]}). Convert input: "
                f"input.to({kinds[1]}), or convert model: model.to({kinds[0]})"
            )
        if input._data.ndim == 2:
            start = _mapped(hx, lambda state: state.unsqueeze(1))
            output, last = self.forward(input.unsqueeze(0 if self.batch_first else 1), start)
            return output.squeeze(0 if self.batch_first else 1), _mapped(last, lambda state: state.squeeze(1))
        steps = list((input.transpose(0, 1) if self.batch_first else input).unbind(0))
        names, ends = self._ends(), []
        ways = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            outputs = []
            for way in range(ways):
                number = layer * ways + way
                start = _mapped(hx, lambda state, number=number: state[number])
                run, last = self._run(self._cell_of(names[number]), steps[::-1] if way else steps, start)
                outputs.append(run[::-1] if way else run)
                ends.append(last)
            steps = [cat(pair, -1) if ways == 2 else pair[0] for pair in zip(*outputs, strict=True)]
            if self.dropout and layer + 1 < self.num_layers:
                steps = [dropout(step, self.dropout, self.training) for step in steps]
        whole = stack(steps, 1 if self.batch_first else 0)
        several = isinstance(ends[0], tuple)
        return whole, tuple(stack(part) for part in zip(*ends, strict=True)) if several else stack(ends)

    def _run(self, cell: Any, steps: list[Tensor], state: Any) -> tuple[list[Tensor], Any]:
        found = []
        for step in steps:
            state = cell(step, state)
            found.append(state[0] if isinstance(state, tuple) else state)
        return found, state

    def extra_repr(self) -> str:
        """Return the sizes, and the options that are not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        text += f", num_layers={self.num_layers}" if self.num_layers != 1 else ""
        text += "" if self.bias else f", bias={self.bias}"
        text += f", batch_first={self.batch_first}" if self.batch_first else ""
        text += f", dropout={self.dropout}" if self.dropout else ""
        return text + (f", bidirectional={self.bidirectional}" if self.bidirectional else "")


def _mapped(value: Any, function: Any) -> Any:
    """Apply a function to a state, or to each of several."""
    if value is None:
        return None
    return tuple(function(entry) for entry in value) if isinstance(value, tuple) else function(value)


class RNN(_Layers):
    """Layers of RNNCells.

    Args:
        args: input_size, hidden_size, num_layers, nonlinearity ("tanh" or "relu"), then those of LSTM from bias on.
        kwargs: the same by name.

    Raises:
        ValueError: there is no such nonlinearity.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) > 3:
            kwargs["nonlinearity"], args = args[3], (*args[:3], *args[4:])
        nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.__dict__["nonlinearity"] = nonlinearity
        super().__init__(*args, **kwargs)

    def _new_cell(self, features: int) -> _Cell:
        return RNNCell(features, self.hidden_size, self.bias, self.nonlinearity)


class LSTM(_Layers):
    """Layers of LSTMCells; the states are pairs (h, c)."""

    cell = LSTMCell


class GRU(_Layers):
    """Layers of GRUCells."""

    cell = GRUCell
