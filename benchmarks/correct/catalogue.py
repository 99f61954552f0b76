"""All specimens."""

from __future__ import annotations

from benchmarks.correct.bodies import BODIES
from benchmarks.correct.branches import BRANCHES
from benchmarks.correct.calls import CALLS
from benchmarks.correct.complexes import COMPLEX
from benchmarks.correct.entries_arrays import ARRAYS
from benchmarks.correct.entries_kinks import KINKS
from benchmarks.correct.entries_smooth import SMOOTH
from benchmarks.correct.integrators import INTEGRATORS
from benchmarks.correct.layers import LAYERS
from benchmarks.correct.layouts import LAYOUTS
from benchmarks.correct.losses import LOSSES
from benchmarks.correct.manners import MANNERS
from benchmarks.correct.matrices import MATRICES
from benchmarks.correct.ordering import ORDER
from benchmarks.correct.others import ENGINE, JAX, NUMPY
from benchmarks.correct.precision import ROUGH
from benchmarks.correct.randomness import RANDOM
from benchmarks.correct.reductions import REDUCTIONS
from benchmarks.correct.solvers import SOLVERS
from benchmarks.correct.specimen import Collection, Specimen
from benchmarks.correct.spectra import SPECTRA
from benchmarks.correct.stopped import STOPPED
from benchmarks.correct.triangles import TRIANGLES
from benchmarks.correct.units import UNITS

GROUPS: tuple[Collection, ...] = (
    SMOOTH,
    KINKS,
    ARRAYS,
    MATRICES,
    SPECTRA,
    ROUGH,
    SOLVERS,
    STOPPED,
    INTEGRATORS,
    BRANCHES,
    CALLS,
    TRIANGLES,
    UNITS,
    LAYERS,
    REDUCTIONS,
    LOSSES,
    ORDER,
    MANNERS,
    LAYOUTS,
    RANDOM,
    COMPLEX,
    ENGINE,
    JAX,
    NUMPY,
    BODIES,
)
ALL: tuple[Specimen, ...] = tuple(specimen for group in GROUPS for specimen in group)
