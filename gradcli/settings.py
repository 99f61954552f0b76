"""What a run is asked to do: one frozen value that every stage reads."""

from gradcli.frozen import dataclass

DEFAULT_ORDER = 2
"""The highest order that is checked where nobody asks for one."""
HIGHEST_ORDER = 9
"""The highest order that can be asked for.

Each order differentiates the graph of the one before and about doubles the time: x² of 12 entries takes 2 s at order 7,
4 s at 8, and its bound comes down to 1e-6 there.
"""
MOST_SAMPLES = 10_000
"""The most random inputs that can be asked for: their plan is made before the first is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of a check.

    `order` is the highest derivative order, `order_asked` whether the user asked for it: a backward that raises when it
    is differentiated fails a case only then. `samples` is the number of random inputs a case; `allow` holds the names
    of findings that do not fail the case, each with the reason;
    `significance` the relative error, of the block of one input and output, below which a
    difference is measured but does not matter; `nondeterminism` what results may vary by from call to call, relative to
    the largest; `device` where the tensors lie, `triton` where Triton kernels run: on a GPU, in its interpreter, or
    either as it is there (auto); `timeout` is in seconds, per case, and so is `budget`, after which no more optional
    work is begun (None: after a minute of it).
    With `limited` the budget also ends checks that are not optional, as in a proof, which nobody waits for.
    `figures` asks for what a page draws, tables of Jacobians and the error against the step; `tables` for what `-v`
    shows, entries of every gradient beside differences of forward and the hooks that fire.
    """

    order: int = DEFAULT_ORDER
    order_asked: bool = False
    seed: int = 0
    samples: int = 3
    dtype: str = "float64"
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    allow: tuple[tuple[str, str], ...] = ()
    require_resolution: float | None = None
    significance: float = 1e-7
    nondeterminism: float = 0.0
    device: str | None = None
    triton: str = "auto"
    timeout: float | None = None
    budget: float | None = None
    limited: bool = False
    jobs: int = 1
    fail_fast: bool = False
    allow_inconclusive: bool = False
    shrink: bool = True
    figures: bool = False
    tables: bool = False

    @property
    def first_order(self) -> bool:
        """Whether the first derivative is to be compared: it is, unless only other checks are named."""
        return not self.only or "gradient" in self.only

    def wants(self, check: str) -> bool:
        """Whether a check of the battery is asked for."""
        return check not in self.skip and (not self.only or check in self.only)
