"""What became of a named tensor: its gradient, or the operation at which that was lost."""

from typing import Any

from gradcli.frozen import dataclass
from gradcli.traces.summaries import ArraySummary, SourceSite


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCut:
    """An operation that cuts the graph: gradients follow its input but not its result; with the leaves cut off.

    `other_result` says that gradients follow another result of the same operation, `before_flag` that the leaf was used
    when its requires_grad was still False, `new_leaf` that the operation creates a new leaf, `of_gradients` that it is
    autograd.grad without create_graph=True, `captured` that it is a Function whose forward used the leaf without being
    given it, `without_graph` that no input required grad. `how` is what was called:
    "detach()", ".data", "item()", "gt()", "long()", "Sign.apply()", or, `by_mode`, what had switched recording off:
    "no_grad", "inference_mode", "set_grad_enabled(False)", with `site` the line of that and `used_at` the line of the
    operation, None for the target itself; `at_import` says that it was off before the target was called. `gives` is the
    dtype of the result, or "number"; `forward` where the forward of a custom Function is written. `certain` says that
    the traced result was computed from the operation's result, without arithmetic of Python or NumPy in between.
    """

    how: str
    site: SourceSite | None
    leaves: tuple[str, ...] = ()
    used_at: SourceSite | None = None
    certain: bool = True
    by_mode: bool = False
    at_import: bool = False
    gives: str = "float64"
    forward: SourceSite | None = None
    other_result: bool = False
    before_flag: bool = False
    new_leaf: bool = False
    of_gradients: bool = False
    captured: bool = False
    without_graph: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "how": self.how,
            "site": None if self.site is None else self.site.to_dict(),
            "leaves": list(self.leaves),
            "certain": self.certain,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFate:
    """A named tensor after backward: its `.grad`, or why there is none.

    `role` is "input", "parameter", "local" or "attribute". `node` is the graph node of the tensor. `same_memory` is a
    leaf of the graph that shares its memory, if the pass did not reach this one. For a non-leaf tensor: `made_by` is
    its operation, `made_at` and `made_with` the line, `origins` the leaves it was computed from ("" for one without a
    name), `operations` the operations from the leaf, if they form a chain from a single one. `retained_late` says that
    retain_grad() was called only after backward, at `retained_at`; `cleared_at` is where the program last removed its
    gradient, `zeroed_by` the operation ("" if unknown) if that left zeros of what backward had filled, `replaced_at`
    where it gave a module a different parameter in place of this one, `used_at` the first operation that used it,
    `asked_at` where autograd.grad reached it, `asked_with_graph` that this was with create_graph=True. `left_out` says
    that the pass was restricted to other tensors, `in_result` that a graph leads to it from what the program returned;
    `unregistered_in` is the class of the module that holds it as a plain tensor, `switched_off_at` where its
    requires_grad was set to False.
    """

    name: str
    is_leaf: bool
    requires_grad: bool
    grad: ArraySummary | None
    why: str | None = None
    symptom: str | None = None
    site: SourceSite | None = None
    role: str = "input"
    aliases: tuple[str, ...] = ()
    node: int | None = None
    made_by: str | None = None
    made_with: str | None = None
    origins: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    retains_grad: bool = False
    retained_late: bool = False
    retained_at: SourceSite | None = None
    cleared_at: SourceSite | None = None
    zeroed_by: str | None = None
    replaced_at: SourceSite | None = None
    asked_at: SourceSite | None = None
    asked_with_graph: bool = False
    used_at: SourceSite | None = None
    changed_at: SourceSite | None = None
    changed_by: str | None = None
    left_out: bool = False
    in_result: bool = False
    unregistered_in: str | None = None
    switched_off_at: SourceSite | None = None
    floating: bool = True
    stray_attribute: str | None = None
    same_memory: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the trace document."""
        return {
            "name": self.name,
            "is_leaf": self.is_leaf,
            "requires_grad": self.requires_grad,
            "grad": None if self.grad is None else self.grad.to_dict(),
            "why": self.why,
            "symptom": self.symptom,
            "site": None if self.site is None else self.site.to_dict(),
            "role": self.role,
            "aliases": list(self.aliases),
            "node": self.node,
            "made_by": self.made_by,
            "made_with": self.made_with,
            "origins": list(self.origins),
        }
