"""The namespace `nn.utils`: gradient clipping, parameters as one vector, and parametrizations."""

from typing import Any

from gradcli.engine.interface.missing_names import refusal
from gradcli.engine.nn.utils import parametrizations as parametrizations
from gradcli.engine.nn.utils import parametrize as parametrize
from gradcli.engine.nn.utils.clip_grad import clip_grad_norm as clip_grad_norm_
from gradcli.engine.nn.utils.clip_grad import clip_grad_value as clip_grad_value_
from gradcli.engine.nn.utils.clip_grad import get_total_norm
from gradcli.engine.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from gradcli.engine.nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from gradcli.engine.nn.utils.weight_norm import weight_norm as weight_norm

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_weight_norm",
    "vector_to_parameters",
    "weight_norm",
]


def __getattr__(name: str) -> Any:
    """Raise AttributeError for a name that is not here, with names that are close."""
    raise refusal(".nn.utils", name, globals())
