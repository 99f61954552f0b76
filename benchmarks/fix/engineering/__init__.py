"""Planted mistakes in Functions as engineers write them: losses, normalisations, geometry, finance, physics, solvers.

As in benchmarks/fix/corpus.py, a mistake is (kind, what is right, what stands there instead, names that are true of
it). Here every Function says its inputs: `x=nm` is a tensor whose axes have the sizes n and m, `pos:` `unit:` `spd:`
`distinct:` draw it so, `bool:` and `idx:` make a mask and indices below the size after the slash; a number is an
argument.
"""

from benchmarks.fix.engineering.layers import LAYERS
from benchmarks.fix.engineering.losses import LOSSES
from benchmarks.fix.engineering.matrices import MATRICES
from benchmarks.fix.engineering.sciences import SCIENCES
from benchmarks.fix.engineering.sequences import SEQUENCES
from benchmarks.fix.engineering.special import SPECIAL

ENGINEERING = {**LAYERS, **LOSSES, **SCIENCES, **MATRICES, **SEQUENCES, **SPECIAL}
