"""The checks of the battery in their order: first those that decide a case, then the optional ones."""

from gradcli.checks.aliasing import AliasingCheck
from gradcli.checks.base import Check
from gradcli.checks.batching import BatchingCheck
from gradcli.checks.compilation import CompilationCheck
from gradcli.checks.constants import ConstantsCheck
from gradcli.checks.forward_mode import ForwardModeCheck
from gradcli.checks.gradient import GradientCheck, HigherOrderCheck
from gradcli.checks.layout import LayoutCheck
from gradcli.checks.linearity import LinearityCheck
from gradcli.checks.memory import MemoryCheck
from gradcli.checks.mutation import MutationCheck
from gradcli.checks.other_inputs import OtherInputsCheck
from gradcli.checks.precision import PrecisionCheck
from gradcli.checks.primal import ForwardCheck
from gradcli.checks.repeat import RepeatCheck
from gradcli.checks.returns import ReturnsCheck
from gradcli.checks.sizes import EmptyCheck, SizesCheck
from gradcli.checks.subsets import SubsetsCheck
from gradcli.checks.unused import UnusedOutputsCheck
from gradcli.checks.variants import UntrackedCheck

CHECKS: tuple[Check, ...] = (
    ForwardCheck(),
    ReturnsCheck(),
    MutationCheck(),
    MemoryCheck(),
    RepeatCheck(),
    LinearityCheck(),
    GradientCheck(),
    ForwardModeCheck(),
    BatchingCheck(),
    CompilationCheck(),
    SubsetsCheck(),
    LayoutCheck(),
    AliasingCheck(),
    UnusedOutputsCheck(),
    UntrackedCheck(),
    ConstantsCheck(),
    PrecisionCheck(),
    HigherOrderCheck(),
    SizesCheck(),
    EmptyCheck(),
    OtherInputsCheck(),
)
