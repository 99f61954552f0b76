"""The inputs that are to be found for the plain Functions."""

from gradcli.inputs.search.inference import infer
from tests.programs import plain_functions as plain

EXPECTED = {
    "linear": "-i input=3x4 -i weight=5x4 -i bias=5",
    "mul_constant": "-i tensor=3x4 -a constant=2.5",
    "relu": "-i input=3x4",
    "matmul": "-i a=3x4 -i b=4x5",
    "mm": "-i a=3x4 -i b=4x5",
    "bmm": "-i a=3x4x5 -i b=3x5x2",
    "outer": "-i a=3 -i b=4",
    "add": "-i x=3x4 -i y=3x4",
    "divide": "-i a=3x4 -i b=3x4",
    "softmax": "-i x=3x4 -a dim=-1",
    "layer_norm": "-i x=3x4 -i weight=4 -i bias=4",
    "embedding": "-i weight=3x4 -i idx=5,domain=indices,high=3",
    "cross_entropy": "-i logits=3x4 -i target=3,domain=indices,high=4",
    "where": "-i mask=3x4,domain=boolean -i a=3x4 -i b=3x4",
    "cumsum": "-i x=3x4 -a dim=-1",
    "norm": "-i x=3x4",
    "log": "-i x=3x4,domain=positive",
    "sqrt": "-i x=3x4,domain=positive",
    "acosh": "-i x=3x4,domain=open-interval,lo=1.2,hi=3.0",
    "atanh": "-i x=3x4,domain=open-interval,lo=-1.0,hi=1.0",
    "log_of_minus": "-i x=3x4,domain=open-interval,lo=-3.0,hi=-0.1",
    "cholesky": "-i a=3x3,domain=spd",
    "inverse": "-i a=3x3",
    "total": "-i 'tensors[0]=3x4' -i 'tensors[1]=3x4'",
    "flagged": "-i x=3x4 -a transposed=True",
    "reduced": "-i x=3x4 -i target=3x4",
    "keyworded": "-i x=3x4 -i scale=3x4",
    "scalar_loss": "-i prediction=3x4 -i target=3x4",
    "dot": "-i a=3 -i b=3",
    "complex_abs": "-i z=3x4",
    "bilinear": "-i x=3x4 -i y=3x5 -i weight=2x4x5",
    "labelled_rows": "-i scores=3x4 -i labels=3,domain=indices,high=4",
    "labels_after_a_product": "-i W=3x4 -i X=5x3 -i y=5,domain=indices,high=4",
    "distances": "-i x=3x4 -i y=5x4",
    "table": "-i x=3 -i y=4",
}


ALSO_FOUND = ("gather", "conv1d", "conv2d", "solve", "clamp", "power")


def inferred(name, **options):
    function = getattr(plain, name)
    return infer(plain.info_of(function), plain.attempt_of(function), **options)
