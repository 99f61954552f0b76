"""A mistake in one expression of backward is named with the expression, its line, and what belongs there."""

import ast
import inspect

import numpy as np
import pytest

from benchmarks.fix.corpus import specimens
from benchmarks.fix.run import agrees, named
from gradcli import check
from gradcli import engine as torch
from gradcli.backends.numpy.claims import GradientPair
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips import trial
from gradcli.diagnosis.slips.bench import Bench
from gradcli.diagnosis.slips.forms import Form, times
from gradcli.diagnosis.slips.hooks import Hooks, hooked, places_in, running
from gradcli.diagnosis.slips.search import SlipSearch
from gradcli.edits.source import written
from tests.programs.planted import subject_of

CASES = {s.name: s for s in specimens()}
SAID = {
    "engine-TanhLinear-0-chain": ("wrong-factor", "line 16 has `g.mm(w.t())` where `gz.mm(w.t())` belongs"),
    "engine-Softmax-0-term": ("missing-term", "`grad_output` lacks the term `-inner` in `y * grad_output` (line 17)"),
    "engine-Softmax-2-sign": ("missing-term", "`y * (grad_output + inner)` where `y * (grad_output - inner)` belongs"),
    "engine-Softmax-1-axis": ("wrong-reduction", ".sum(0, keepdim=True)` where `(grad_output * y).sum(-1"),
    "engine-Sigmoid-0-factor": ("wrong-factor", "`grad_output * y` lacks the factor `1 - y` (line 15)"),
    "engine-Divide-5-unpacked": ("wrong-factor", "`b, a = ctx.saved_tensors` where `a, b = ctx.saved_tensors` belongs"),
    "engine-Power-1-count": ("wrong-factor", "line 14 has `i = 1` where `i = 0` belongs"),
    "torch-Mish-0-chain": ("wrong-factor", "`x * (1 - t * t)` lacks the factor `s`"),
    "torch-GeneralSolve-0-transposition": ("transposed", "where `torch.linalg.solve(m.t(), g)` belongs"),
    "torch-HeatStep-3-index": ("wrong-shift", "`k[:-1]"),
    "torch-SoftPlusBeta-0-argument": ("wrong-factor", "`g * torch.sigmoid(x * ctx.beta)` belongs"),
    "torch-Conv1d-3-factor": ("wrong-factor", "+= g[i] * w` belongs"),
    "numpy-sine-0-function": ("wrong-factor", "`g * a * np.sin(x)` where `g * a * np.cos(x)` belongs"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SAID)
def test_a_slip_is_named_with_its_place_and_what_belongs_there(name, tmp_path):
    if name.startswith("torch-"):
        pytest.importorskip("torch", reason="the Function is PyTorch's")
    specimen = CASES[name]
    kind, says = SAID[name]
    result, _ = named(specimen, tmp_path)
    sentence = result.sentences[0]
    assert says in sentence
    assert sentence.endswith(f"the returned gradient is right   [{kind}]")
    assert result.patch is not None
    assert agrees(specimen, result.patch.after, tmp_path)


def test_a_slip_in_a_rule_of_jax_is_named_by_what_belongs_there(monkeypatch, tmp_path):
    pytest.importorskip("jax")
    for name in ("FLOOR_SECONDS", "UNMEASURED_SECONDS", "OPTIONAL_SECONDS"):  # a busy machine compiles slowly
        monkeypatch.setattr(f"gradcli.watchdog.case.{name}", 300.0)
    monkeypatch.setattr("gradcli.diagnosis.slips.search._SECONDS", 300.0)
    specimen = CASES["jax-swish-3-factor"]
    result, _ = named(specimen, tmp_path)
    assert "`y` lacks the factor `y` in `g * (1 - y)` (line 17)" in result.sentences[0]
    assert result.patch is not None
    assert agrees(specimen, result.patch.after, tmp_path)


HEAD = "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n\n"


def sentences_for(forward: str, backward: str, folder) -> tuple[str, ...]:
    body = (
        "class Own(Function):\n    @staticmethod\n    def forward(ctx, x, w):\n        ctx.save_for_backward(x, w)\n"
        f"        return {forward}\n\n    @staticmethod\n    def backward(ctx, g):\n"
        f"        x, w = ctx.saved_tensors\n        return {backward}\n"
    )
    specimen = type(CASES["numpy-sine-0-function"])("own", "", "engine", "Own", HEAD + body, HEAD + body, frozenset())
    return named(specimen, folder)[0].sentences


def test_two_mistakes_in_one_gradient_are_no_slip(tmp_path):
    (said,) = sentences_for(
        "torch.exp(torch.sin(x)) * (x * x * x + torch.cos(5 * x)) * w",
        "g * x, g * torch.exp(torch.sin(x)) * (x * x * x + torch.cos(5 * x))",
        tmp_path,
    )
    assert said.endswith("[wrong-gradient]")


def test_a_gradient_where_forward_is_flat_is_left_to_its_own_name(tmp_path):
    said = sentences_for("torch.sign(x) * torch.sign(w)", "g * x, g * w", tmp_path)
    assert said
    assert all("`expect: surrogate`" in sentence for sentence in said)


@pytest.mark.parametrize(
    ("backward", "says"),
    [
        ("g * w * torch.cos(x), g * torch.sin(x)", None),
        ("g * w * torch.sin(x), g * torch.sin(x)", "`g * w * torch.cos(x)` belongs"),
        ("g * torch.cos(x), g * torch.sin(x)", "lacks the factor `w`"),
        ("g * w * torch.cos(x), g", "lacks the factor `torch.sin(x)`"),
        ("g * w * torch.cos(x) / 3, g * torch.sin(x)", "1/3 of the right one"),
        ("g * w * torch.cos(x) + g * x, g * torch.sin(x)", "belongs"),
        ("g * w, g * torch.sin(x)", "lacks the factor `torch.cos(x)`"),
    ],
)
def test_each_way_to_write_one_derivative_wrong_has_its_own_sentence(backward, says, tmp_path):
    said = sentences_for("w * torch.sin(x)", backward, tmp_path)
    if says is None:
        assert said == ()
        return
    assert len(said) == 1
    assert says in said[0]


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.tanh(x) * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * torch.tanh(x)


def product_facts() -> Facts:
    return Facts(subject_of(Product, (3, 4), (3, 4)), 0)


def test_the_users_code_is_as_it_was_after_a_search():
    before = Product.backward.__code__, Product.forward.__code__, dict(Product.backward.__globals__)
    slip = SlipSearch(product_facts()).slip_for(0)
    assert slip is not None
    assert ast.unparse(slip.new) == "g * w * (1 - torch.tanh(x) ** 2)"
    assert (Product.backward.__code__, Product.forward.__code__) == before[:2]
    assert Product.backward.__globals__.keys() == before[2].keys()


def test_a_search_ends_after_so_many_runs_of_backward(monkeypatch):
    runs = []
    projected = Bench.projected

    def counted(self):
        runs.append(1)
        return projected(self)

    monkeypatch.setattr(Bench, "projected", counted)
    counts = []
    for most, is_found in ((trial.MOST_RUNS, True), (trial.MOST_RUNS, True), (10, False)):
        monkeypatch.setattr(trial, "MOST_RUNS", most)
        runs.clear()
        assert (SlipSearch(product_facts()).slip_for(0) is not None) == is_found
        counts.append(len(runs))
    assert counts[0] == counts[1] > counts[2]


def test_what_fits_here_and_not_at_other_inputs_is_not_named(monkeypatch):
    facts = product_facts()
    there = facts.rearranged(0)
    assert there is not None
    found = SlipSearch(facts)
    right = SlipSearch(product_facts()).slip_for(0)
    assert right is not None
    # The same slip, held at inputs where forward is another function, is refuted there.
    other = Facts(subject_of(type("Other", (Product,), {"forward": staticmethod(_cubed)}), (3, 4), (3, 4)), 0)
    monkeypatch.setattr(SlipSearch, "_elsewhere", lambda _: [other])
    assert found.slip_for(0) is None
    assert trial.PROOFS > 1


def _cubed(ctx, x, w):
    ctx.save_for_backward(x, w)
    return x * x * x * w


def test_hooked_code_computes_the_same_and_gives_other_values_where_it_is_told_to():
    own = written(poly)
    assert own is not None
    expressions = {n for n in ast.walk(own.node) if isinstance(n, ast.BinOp)}
    places = places_in(own.node, expressions)
    hooks = Hooks()
    code = hooked(own.node, poly, places, hooks)
    assert code is not None
    number = next(i for i, p in enumerate(places) if ast.unparse(p) == "x * x")
    with running({poly: code}):
        assert poly(3.0, [1, 2]) == 21.0
        with hooks.recording() as seen:
            poly(3.0, [])
        assert [value for value, _ in seen[number]] == [9.0]
        assert seen[number][0][1]["x"] == 3.0
        with hooks.giving(number, lambda: 100.0):
            assert poly(3.0, []) == 112.0
    assert poly(3.0, [1]) == 21.0
    assert inspect.unwrap(poly).__code__ is not code


def poly(x, unused):
    """A docstring stays the first statement."""
    total = sum(2 * i for i in unused)
    del total
    return x * x + 4 * x


def test_a_product_with_a_reciprocal_is_written_as_a_quotient():
    a, b = Form(1, "a + c", (np.ones(2),), 0), Form(2, "1 / b", (np.full(2, 0.5),), 1)
    made = times(a, b)
    assert made is not None
    assert (made.text, made.values[0].tolist()) == ("(a + c) / b", [0.5, 0.5])


def nested(call, depth):
    """Be called so often, as a backward is that differentiates a graph in which it stands."""
    left = depth - 1
    return call(call, left) if left else depth


def test_hooked_code_that_calls_itself_without_end_is_stopped_and_a_few_levels_are_not():
    own = written(nested)
    assert own is not None
    places = places_in(own.node, {n for n in ast.walk(own.node) if isinstance(n, ast.BinOp)})
    code = hooked(own.node, nested, places, Hooks())
    assert code is not None
    with running({nested: code}):
        assert nested(nested, 4) == 1
        with pytest.raises(RecursionError):
            nested(nested, 100)
    assert nested(nested, 100) == 1


def test_an_edit_that_makes_backward_return_objects_is_none():
    """Among the names that fit is that of the module."""

    def leap(q, p, eps):
        return q + eps * p

    def derivative(q, p, eps, g):
        of_eps = 0.0
        of_eps += np.sum(g * q)
        return g, g * eps, np.asarray(of_eps)

    (case,) = check(GradientPair(function=leap, gradient=derivative)).cases
    (finding,) = case.findings
    assert finding.input == "eps"
    assert "`np.sum(g * p)` belongs" in finding.message
