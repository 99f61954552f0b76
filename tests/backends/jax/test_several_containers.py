"""Two arguments of one class, whose fields have the same names."""

import re
from typing import NamedTuple

import pytest

import gradcli
from gradcli.backends.registry import backend_named
from gradcli.errors import InputsNotFoundError
from gradcli.inputs.hints.containers.arguments import containers_of
from gradcli.inputs.search.inference import infer
from gradcli.runner.arguments.nested import unfolded
from gradcli.targets import Trial
from gradcli.verdict import Verdict


class Gauss(NamedTuple):
    mean: object
    log_std: object


def divergence(factor, *, has_term=True):
    """The divergence of two normal distributions; `factor` and `has_term` make twins of its backward."""
    jax = pytest.importorskip("jax")
    exp = jax.numpy.exp

    @jax.custom_vjp
    def function(p: Gauss, q: Gauss):
        variances = exp(2 * p.log_std) + (p.mean - q.mean) ** 2
        return (q.log_std - p.log_std + 0.5 * variances * exp(-2 * q.log_std) - 0.5).sum()

    def backward(kept, g):
        p, q = kept
        inverse, apart = exp(-2 * q.log_std), p.mean - q.mean
        of_mean = g * apart * inverse
        variances = exp(2 * p.log_std) + (apart**2 if has_term else 0)
        return (
            Gauss(factor * of_mean, g * (exp(2 * p.log_std) * inverse - 1)),
            Gauss(-of_mean, g * (1 - variances * inverse)),
        )

    function.defvjp(lambda p, q: (function.fun(p, q), (p, q)), backward)
    return function


def test_two_arguments_of_one_class_are_inferred():
    (case,) = gradcli.check(divergence(1.0), order=1, samples=1, shrink=False, only=["gradient"]).cases
    assert case.verdict is Verdict.PASSED, case
    assert {spec.name for spec in case.inputs} - {"p", "q"} == {"p.mean", "p.log_std", "q.mean", "q.log_std"}


@pytest.mark.parametrize(
    ("twin", "wrong"), [(lambda: divergence(1.01), "p.mean"), (lambda: divergence(1.0, has_term=False), "q.log_std")]
)
@pytest.mark.usefixtures("unexplained")
def test_a_wrong_gradient_of_one_field_of_one_of_them_fails(twin, wrong):
    (case,) = gradcli.check(twin(), order=1, samples=1, shrink=False, only=["gradient"]).cases
    assert case.verdict is Verdict.FAILED
    assert {e.input for e in case.evidence if e.verdict is Verdict.FAILED} == {wrong}


def test_their_leaves_have_different_names_for_the_search():
    found = containers_of(backend_named("jax").describe(divergence(1.0)))
    names = [name for container in found.values() for _, name in container.leaves]
    assert len(set(names)) == 4
    assert [path for container in found.values() for path, _ in container.leaves] == [".mean", ".log_std"] * 2


def test_flags_that_an_error_names_are_accepted():
    (way, *_) = unfolded(backend_named("jax").describe(divergence(1.0)), ())

    def refused(arguments):
        return Trial(error=ValueError(f"no {len(arguments)}"))

    with pytest.raises(InputsNotFoundError) as caught:
        infer(way.info, refused, budget_tries=3)
    message = way.text(str(caught.value))
    assert "arguments p.mean, p.log_std, q.mean, q.log_std;" in message
    assert re.findall(r'-i "([^"=]+)=3x4"', message) == ["p.mean", "p.log_std", "q.mean", "q.log_std"]
