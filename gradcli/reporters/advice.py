"""What to do about an inconclusive check, in terms of the inputs at hand."""

from dataclasses import replace

from gradcli.cases import InputSpec
from gradcli.results import CheckResult, Evidence
from gradcli.verdict import Reason

_GIVEN = ("literal", "npz")
"""The domains whose values are the user's own."""


def advice_on(evidence: Evidence, result: CheckResult) -> str | None:
    """The remedy for the reason of a check: it names the input, and suggests nothing that was done; None without one.

    Random values are suggested only where the values were given, and a domain where they were drawn from none.
    """
    reason = evidence.reason
    tensors = [each for each in result.inputs if _is_real(each)]
    meant = [each for each in tensors if evidence.input in (None, each.name)]
    spec = meant[0] if len(meant) == 1 else None
    if reason not in (Reason.KINK, Reason.DOMAIN) or spec is None:
        return None if reason is None else reason.remedy
    return _away_from_kink(spec) if reason is Reason.KINK else _inside(spec)


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
