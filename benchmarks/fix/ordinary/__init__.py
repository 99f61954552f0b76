"""Functions as tutorials write them, as text for the engine and PyTorch, and a few of JAX and NumPy."""

from benchmarks.fix.ordinary.elementwise import ELEMENTWISE
from benchmarks.fix.ordinary.layers import LAYERS
from benchmarks.fix.ordinary.other_frameworks import JAX, NUMPY
from benchmarks.fix.ordinary.rows import ROWS

FUNCTIONS = {**LAYERS, **ELEMENTWISE, **ROWS}
__all__ = ["FUNCTIONS", "JAX", "NUMPY"]
