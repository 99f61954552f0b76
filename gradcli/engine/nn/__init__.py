"""Neural network parts: modules, layers, losses, and the functions behind them."""

from typing import Any

from gradcli.engine.nn import functional, init, modules
from gradcli.engine.nn.activations import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardtanh,
    Identity,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Softsign,
    Tanh,
)  # fmt: skip
from gradcli.engine.nn.attention import MultiheadAttention
from gradcli.engine.nn.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from gradcli.engine.nn.convolutions import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from gradcli.engine.nn.layers import (
    AvgPool2d,
    BatchNorm1d,
    BatchNorm2d,
    Bilinear,
    Dropout,
    Embedding,
    Flatten,
    GroupNorm,
    LayerNorm,
    Linear,
    MaxPool2d,
    PixelShuffle,
    Unflatten,
)  # fmt: skip
from gradcli.engine.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)  # fmt: skip
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.nn.recurrent import GRUCell, LSTMCell, RNNCell
from gradcli.engine.printed import PRINTED_MODULE

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "Hardtanh",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "NLLLoss",
    "PReLU",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "PixelShuffle",
    "RNNCell",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
    "Unflatten",
    "functional",
    "init",
    "modules",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Refuse a name that is not here, in the words programs know."""
    raise AttributeError(f"module '{PRINTED_MODULE}.nn' has no attribute '{name}'", name=name)
