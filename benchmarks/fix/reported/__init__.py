"""Public reports of wrong gradients, written again as small Functions that run on a CPU, each beside a right twin.

docs/findings/bugs.yaml says which case stands for which reports. Reports about one device, about offsets beyond 32 bits
and about checkers have no Function here.

Run: python -m benchmarks.fix_corpus --reported [--results FILE] [--workers N]
"""

from benchmarks.fix.other_hand.record import Case
from benchmarks.fix.reported import formulas, layers_and_losses, memory, shared_entries

_ORDER = (
    "Conic",
    "Subtract",
    "PreNorm",
    "LayerNormalisation",
    "SummedCrossEntropy",
    "RowCrossEntropy",
    "MeanSquare",
    "RowPool",
    "BroadcastScale",
    "InPlaceLoss",
    "Shift",
    "ScaleInPlace",
    "SavedExponential",
    "Softsign",
    "PowerOfThree",
    "Reflect",
    "Lookup",
    "OverlappingMaximum",
    "StridedConvolution",
    "StaleBuffer",
    "Race",
    "HalfMaximum",
    "Steady",
    "Accumulates",
    "Power",
    "TutorialLoss",
    "KeepsOutput",
    "Interpolates",
    "CosineRows",
    "Distance",
)
"""The Functions in the order of docs/findings/reports.md."""


def cases() -> list[Case]:
    """Every case."""
    families = (formulas.PLANT, layers_and_losses.PLANT, memory.PLANT, shared_entries.PLANT)
    found = [case for family in families for case in family.cases]
    return sorted(found, key=lambda case: _ORDER.index(case.target))
