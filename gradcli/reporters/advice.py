"""What to do about an inconclusive check, in terms of the inputs at hand."""

from dataclasses import replace

from gradcli.cases import InputSpec
from gradcli.results import CheckResult, Evidence
from gradcli.verdict import Reason

_GIVEN = ("literal", "npz")
"""The domains whose values are the user's own."""
_STOPS = "Tighten the tolerance at which the iteration in forward stops, or fix its number of iterations."
_DROWNED = (
    "Give inputs at which this derivative is larger next to the values it is part of, or scale outputs so that their "
    "magnitudes are similar."
)
_PRECISE = {
    (Reason.NO_SIGNAL, "left out on request"): "Run the check gradient too: name it with --only, or do not skip it.",
    (Reason.NOISE, "number of iterations"): _STOPS,
    (Reason.NOISE, "a solver's tolerance"): "If a solver in forward stops early, tighten its tolerance.",
    (Reason.BUDGET, "was stopped"): "Run the check again while the machine is less busy, or give smaller inputs.",
    (Reason.NO_SIGNAL, "below rounding errors"): _DROWNED,
}
"""Better advice than that for the reason, if the note contains these words."""


def advice_on(evidence: Evidence, result: CheckResult) -> str | None:
    """The remedy for the reason of a check: it names the input, and suggests nothing that was done; None without one.

    Random values are suggested only where the values were given, and a domain where they were drawn from none.
    """
    reason = evidence.reason
    tensors = [each for each in result.inputs if _is_real(each)]
    meant = [each for each in tensors if evidence.input in (None, each.name)]
    spec = meant[0] if len(meant) == 1 else None
    if reason not in (Reason.KINK, Reason.DOMAIN) or spec is None:
        return None if reason is None else _for_reason(reason, evidence.note or "")
    return _away_from_kink(spec) if reason is Reason.KINK else _inside(spec)


def _for_reason(reason: Reason, note: str) -> str:
    """The advice for a reason, or one that the note makes more precise."""
    precise = [advice for (other, told), advice in _PRECISE.items() if other is reason and told in note]
    return precise[0] if precise else reason.remedy


def _is_real(spec: InputSpec) -> bool:
    return spec.kind == "tensor" and spec.shape is not None and not (spec.dtype or "float").startswith("complex")


def _away_from_kink(spec: InputSpec) -> str:
    name = spec.name
    if spec.domain in _GIVEN:
        return (
            f"Give values of {name} away from the kink, for example random ones ({_drawn(spec, 'normal')} draws them), "
            "or list others in a spec."
        )
    if spec.domain == "normal":
        return (
            f"{name} was drawn at random: if forward is meant for a range of values, give it, for example by "
            f"{_drawn(spec, 'open-interval', lo=0, hi=1)}, or list values away from the kink in a spec."
        )
    return (
        f"{name} was drawn from domain {spec.domain}: give another domain, or list values away from the kink in a spec."
    )


def _inside(spec: InputSpec) -> str:
    name = spec.name
    if spec.domain in _GIVEN:
        return f"Give values of {name} inside the domain, for example random ones by {_drawn(spec, 'positive')}."
    if spec.domain == "normal":
        return f"Give values of {name} inside the domain, for example by {_drawn(spec, 'positive')}."
    return (
        f"{name} was drawn from domain {spec.domain}: give a domain inside that of forward, or list values in a spec."
    )


def _drawn(spec: InputSpec, domain: str, **parameters: float) -> str:
    """The flag that draws an input from a domain."""
    tracked = None if spec.requires_grad else spec.requires_grad
    return replace(spec, domain=domain, parameters=tuple(parameters.items()), requires_grad=tracked).as_flag()
