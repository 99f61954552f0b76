"""Forms in which gradients are written by hand for NumPy: right ones pass, wrong copies fail, a note says how."""

import textwrap

import numpy as np
import pytest

import gradcli
from gradcli.errors import WithoutDerivativeError
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

FORMS = {
    "loss and gradient": (
        """
        def softmax_loss(x, y):
            p = np.exp(x - x.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            n = x.shape[0]
            loss = -np.sum(np.log(p[np.arange(n), y])) / n
            dx = p.copy()
            dx[np.arange(n), y] -= 1
            dx /= n
            return loss, dx
        """,
        "softmax_loss",
        "dx /= n",
        "dx /= 1.01 * n",
    ),
    "the gradient of a later argument": (
        """
        def hinge(X, y, w):
            m = 1 - y * (X @ w)
            loss = np.mean(np.maximum(m, 0) ** 2)
            return loss, -2 * X.T @ (y * np.maximum(m, 0)) / len(y)
        """,
        "hinge",
        "-2 *",
        "-2.02 *",
    ),
    "loss and gradients": (
        """
        def affine_loss(x, w, b, t):
            d = x @ w + b - t
            loss = 0.5 * np.sum(d**2) / len(x)
            d = d / len(x)
            return loss, d @ w.T, x.T @ d, d.sum(0)
        """,
        "affine_loss",
        "x.T @ d,",
        "1.01 * x.T @ d,",
    ),
    "gradients in another order": (
        """
        def logistic(w, b, X, y):
            z = X @ w + b
            s = -y / (1 + np.exp(y * z)) / len(y)
            grad_w, grad_b = X.T @ s, np.sum(s)
            return np.mean(np.log1p(np.exp(-y * z))), grad_b, grad_w
        """,
        "logistic",
        "X.T @ s, np",
        "X.T @ s * 0.99, np",
    ),
    "loss and a dict": (
        """
        def ridge(w, b, X, y, lam=0.3):
            r = X @ w + b - y
            return np.mean(r**2) + lam * w @ w, {"dw": 2 * X.T @ r / len(y) + 2 * lam * w, "db": 2 * np.mean(r)}
        """,
        "ridge",
        " + 2 * lam * w,",
        ",",
    ),
    "a dict and the loss": (
        """
        def propagate(w, b, X, y):
            a = np.tanh(X @ w + b)
            cost = np.sum((a - y) ** 2)
            d = 2 * (a - y) * (1 - a**2)
            grads = {"dw": X.T @ d, "db": np.sum(d)}
            return grads, cost
        """,
        "propagate",
        "1 - a**2",
        "1 - a",
    ),
    "an elementwise derivative": (
        """
        def sigmoid_and_grad(x):
            s = 1 / (1 + np.exp(-x))
            return s, s * (1 - s)
        """,
        "sigmoid_and_grad",
        "(1 - s)",
        "(1 + s)",
    ),
    "parameters in a dict": (
        """
        def two_layers(params, X, y):
            W1, b1 = params["W1"], params["b1"]
            h = np.tanh(X @ W1 + b1)
            d = h @ params["W2"] - y
            grads = {}
            grads["W2"] = h.T @ d
            dh = d @ params["W2"].T * (1 - h**2)
            grads["W1"], grads["b1"] = X.T @ dh, dh.sum(0)
            return 0.5 * np.sum(d**2), grads
        """,
        "two_layers",
        "(1 - h**2)",
        "(1 - h)",
    ),
    "a forward and a backward with a cache": (
        """
        def affine_forward(x, w, b):
            out = x @ w + b
            cache = (x, w)
            return out, cache

        def affine_backward(dout, cache):
            x, w = cache
            return dout @ w.T, x.T @ dout, dout.sum(axis=0)
        """,
        "affine_forward",
        "dout.sum(axis=0)",
        "dout.mean(axis=0)",
    ),
    "one argument, and its shape in the cache": (
        """
        def relu_forward(x):
            out = np.maximum(x, 0)
            return out, x

        def relu_backward(dout, cache):
            x = cache
            dx = np.where(x > 0, dout, 0)
            return dx
        """,
        "relu_forward",
        "dout, 0)",
        "dout, 0.01 * dout)",
    ),
    "a step with several outputs": (
        """
        def step_forward(x, h, c, W):
            i, g = np.tanh(x @ W), np.tanh(h)
            next_c = c * i
            next_h = g * next_c
            return next_h, next_c, (x, W, c, i, g, next_c)

        def step_backward(dnext_h, dnext_c, cache):
            x, W, c, i, g, next_c = cache
            dc_total = dnext_c + dnext_h * g
            di = dc_total * c * (1 - i**2)
            return di @ W.T, dnext_h * next_c * (1 - g**2), dc_total * i, x.T @ di
        """,
        "step_forward",
        "dnext_c + dnext_h",
        "dnext_h",
    ),
    "a backward that returns a dict": (
        """
        def linear_forward(x, w, b):
            return x @ w + b, (x, w)

        def linear_backward(dout, cache):
            x, w = cache
            return {"dx": dout @ w.T, "dw": x.T @ dout, "db": dout.sum(0)}
        """,
        "linear_forward",
        "x.T @ dout",
        "-x.T @ dout",
    ),
    "the output as what backward keeps": (
        """
        def tanh_forward(x):
            out = np.tanh(x)
            return out

        def tanh_backward(dout, out):
            return dout * (1 - out**2)
        """,
        "tanh_forward",
        "out**2)",
        "out)",
    ),
    "parameters and a cache": (
        """
        def forward(params, x):
            z = x @ params["W"] + params["b"]
            return np.tanh(z), (x, z)

        def backward(dout, params, cache):
            x, z = cache
            d = dout * (1 - np.tanh(z) ** 2)
            return {"W": x.T @ d, "b": d.sum(0)}
        """,
        "forward",
        "d.sum(0)",
        "1.01 * d.sum(0)",
    ),
    "settings in a dict": (
        """
        def norm_forward(x, gamma, beta, norm_param):
            eps = norm_param.get("eps", 1e-5)
            std = np.sqrt(x.var(1, keepdims=True) + eps)
            xhat = (x - x.mean(1, keepdims=True)) / std
            return gamma * xhat + beta, (xhat, gamma, std)

        def norm_backward(dout, cache):
            xhat, gamma, std = cache
            d = dout * gamma
            dx = (d - d.mean(1, keepdims=True) - xhat * (d * xhat).mean(1, keepdims=True)) / std
            return dx, (dout * xhat).sum(0), dout.sum(0)
        """,
        "norm_forward",
        " - xhat * (d * xhat).mean(1, keepdims=True)",
        "",
    ),
    "a Jacobian of entries by number": (
        """
        def f(x):
            return np.array([x[0] ** 2 + x[1], x[0] * x[1]])

        def f_jac(x):
            return np.array([[2 * x[0], 1.0], [x[1], x[0]]])
        """,
        "f",
        "[x[1], x[0]]",
        "[x[1], 2 * x[0]]",
    ),
    "a gradient of unpacked entries": (
        """
        def rosen(p):
            a, b = p
            return (1 - a) ** 2 + 100 * (b - a**2) ** 2

        def rosen_grad(p):
            a, b = p
            return np.array([-2 * (1 - a) - 400 * a * (b - a**2), 200 * (b - a**2)])
        """,
        "rosen",
        "- 400 *",
        "- 404 *",
    ),
    "one vector for several numbers": (
        """
        def decay(log_rate, height, log_noise, t, y):
            \"\"\"log_rate, height, log_noise: scalars; t: (N,) times, y: (N,) measurements.\"\"\"
            e = np.exp(-np.exp(log_rate) * t)
            r = height * e - y
            d = np.exp(-2 * log_noise)
            by_rate = -d * np.sum(r * height * t * e) * np.exp(log_rate)
            by_level, by_noise = d * np.sum(r * e), len(t) - d * np.sum(r**2)
            return 0.5 * d * np.sum(r**2) + len(t) * log_noise, np.array([by_rate, by_level, by_noise])
        """,
        "decay",
        "[by_rate, by_level, by_noise]",
        "[by_level, by_rate, by_noise]",
    ),
    "forward in the name of what is no layer": (
        """
        def forward_contract(spot, rate):
            return spot * np.exp(rate)

        def forward_contract_vjp(spot, rate, g):
            return g * np.exp(rate), g * spot * np.exp(rate)

        def backward_contract(spot, rate):
            return spot * np.exp(-rate)
        """,
        "forward_contract",
        "g * spot * np.exp(rate)",
        "g * spot * rate * np.exp(rate)",
    ),
    "a function with the name of a derivative": (
        """
        def gradient_energy(u, mass):
            return np.sum(mass * u**2)

        def gradient_energy_grad(u, mass):
            return 2 * mass * u, u**2
        """,
        "gradient_energy",
        "2 * mass",
        "mass",
    ),
}


def loaded(source, name, tmp_path, monkeypatch):
    """A function of a new module."""
    import importlib.util

    path = tmp_path / f"written_{len([*tmp_path.iterdir()])}.py"  # one name would find the other's compiled file
    path.write_text("import numpy as np\n" + textwrap.dedent(source))
    spec = importlib.util.spec_from_file_location("written_by_hand", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "written_by_hand", module)
    spec.loader.exec_module(module)
    return getattr(module, name)


def checked(source, name, tmp_path, monkeypatch):
    (case,) = gradcli.check(loaded(source, name, tmp_path, monkeypatch), samples=1, shrink=False).cases
    return case


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("unexplained")
def test_a_form_passes_where_it_is_right_and_fails_where_it_is_wrong(form, tmp_path, monkeypatch):
    source, name, right, wrong = FORMS[form]
    assert source.count(right) == 1
    case = checked(source, name, tmp_path, monkeypatch)
    assert case.verdict is Verdict.PASSED, case
    case = checked(source.replace(right, wrong), name, tmp_path, monkeypatch)
    assert case.verdict is Verdict.FAILED, case


def test_a_wrong_shape_stays_with_its_argument(tmp_path, monkeypatch):
    source, name, _, _ = FORMS["loss and gradients"]
    source = source.replace("d.sum(0)", "d")
    (finding, *_) = checked(source, name, tmp_path, monkeypatch).findings
    assert (finding.input, finding.kind) == ("b", FindingKind.MISSING_REDUCTION)
    source, name, _, _ = FORMS["a forward and a backward with a cache"]
    (finding, *_) = checked(source.replace("dout.sum(axis=0)", "dout"), name, tmp_path, monkeypatch).findings
    assert (finding.input, finding.kind) == ("b", FindingKind.MISSING_REDUCTION)


def test_a_note_says_how_a_form_was_read(tmp_path, monkeypatch):
    source, name, _, _ = FORMS["gradients in another order"]
    notes = checked(source, name, tmp_path, monkeypatch).notes
    assert "the gradients were read as those of b, w, in this order" in notes
    source, name, _, _ = FORMS["one vector for several numbers"]
    notes = checked(source, name, tmp_path, monkeypatch).notes
    assert "the entries of the gradient were read as those of log_rate, height, log_noise, in this order" in notes
    source, name, _, _ = FORMS["one argument, and its shape in the cache"]
    assert (
        "checked with relu_backward, its derivative by that name" in checked(source, name, tmp_path, monkeypatch).notes
    )


def test_two_derivatives_by_their_names_are_both_told(tmp_path, monkeypatch):
    source = """
    def reach(q, a):
        return np.cumsum(a * np.cos(q))

    def reach_vjp(q, a, v):
        s = np.cumsum(v[::-1])[::-1]
        return -s * a * np.sin(q), s * np.cos(q)

    def reach_jac(q, a):
        return np.tril(np.tile(-a * np.sin(q), (len(q), 1))), np.tril(np.tile(np.cos(q), (len(q), 1)))
    """
    with pytest.raises(WithoutDerivativeError, match="reach_vjp and reach_jac: say which one to check"):
        checked(source, "reach", tmp_path, monkeypatch)


@pytest.mark.parametrize("kept", ["probs", "cache", "mask"])
def test_a_second_output_is_no_gradient(kept, tmp_path, monkeypatch):
    source = f"""
    def softmax_loss(x):
        {kept} = np.exp(x) / np.exp(x).sum()
        return -np.log({kept}).sum(), {kept}
    """
    with pytest.raises(WithoutDerivativeError, match=rf"returns \(value 0, {kept}\)|{kept}"):
        checked(source, "softmax_loss", tmp_path, monkeypatch)


def test_keys_that_name_no_argument_are_told(tmp_path, monkeypatch):
    source = """
    def loss(w, b):
        return np.sum(w * b), {"alpha": b, "rho": w}
    """
    report = gradcli.check(loaded(source, "loss", tmp_path, monkeypatch))
    assert report.verdict is Verdict.ERROR
    assert "the keys 'alpha', 'rho', which name none of the arguments w, b" in str(report)


def test_leaves_are_given_by_their_names():
    def loss(params, x):
        d = x @ params["W"] + params["b"]
        return 0.5 * np.sum(d**2), {"W": x.T @ d, "b": d.sum(0)}

    given = {"params": {"W": np.ones((3, 4)), "b": np.ones(4)}, "x": np.ones((5, 3))}
    (case,) = gradcli.check(loss, given).cases
    assert case.verdict is Verdict.PASSED
    assert {e.input for e in case.evidence if e.input} == {"params['W']", "params['b']"}
