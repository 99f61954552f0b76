"""Shapes that docstrings, comments and annotations give, and the checks with inputs of these shapes."""

import numpy as np
import pytest

import gradcli
from gradcli.engine import tensor
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.prose.formulas import size_of
from gradcli.verdict import Verdict


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("x (B, L, C) real, complex w (L//2+1, C).", {"x": ("B", "L", "C"), "w": ("L//2+1", "C")}),
        ("Attention of q and k: (B, H, T, D).", {"q": ("B", "H", "T", "D"), "k": ("B", "H", "T", "D")}),
        ("x: [T, D], w: [T*k] -> [T*k, D]", {"x": ("T", "D"), "w": ("T*k",)}),
        ("x (T, B, I), w (3H, I/2).", {"x": ("T", "B", "I"), "w": ("3*H", "I//2")}),
        ("Projects points x (N, 2) by w (3, 3).", {"x": ("N", 2), "w": (3, 3)}),
        ("Args:\n    x (Tensor): features of shape (N, C).\n    w (Tensor): (C,)", {"x": ("N", "C"), "w": ("C",)}),
        ("x (Tensor): the input that q weighs, of shape (N, C)\nw: (C,)", {"x": ("N", "C"), "w": ("C",)}),
        ("x: the input, w (C,)", {"w": ("C",)}),
        ("x: (6000,) energies, w: (B, 512)", {"x": ("N6000",), "w": ("B", "N512")}),
        ("x: (1, 6000) or (0, 255)", {}),
        ("x of shape (4096, 3)", {"x": ("N4096", 3)}),
        ("the year x (2019), q (128, 256)", {}),
        ("x: any shape, e.g. (B, T, K). w (Tensor): of shape e.g. (K,)", {"x": ("B", "T", "K"), "w": ("K",)}),
        ("What is applied to x: w (C, C)", {"w": ("C", "C")}),
        ("x : array_like, shape (n, d)\n    The input.", {"x": ("n", "d")}),
        ("x (Tensor[N, 4]): boxes; w (Tensor[N]): scores", {"x": ("N", 4), "w": ("N",)}),
        (":param x: FloatTensor of shape (V, 3)", {"x": ("V", 3)}),
        ("x: (batch, channels), w: (channels,)", {"x": ("batch", "channels"), "w": ("channels",)}),
        ("`x` is (N x D), w: (..., D)", {"x": ("N", "D"), "w": ("...", "D")}),
        ("x: the input. Returns (N, D)", {}),
        ("x is normalised (mean, variance), see f(x, w) and g (x, w)", {}),
        ("scales x by w (default 3), or w(N, C), or w (see below)", {}),
        ("multiplies a matrix (N, D)", {}),
        ("steps by (x x^T)^-1 w, x: (m, n), w: (m,), n > m", {"x": ("m", "n"), "w": ("m",)}),
        ("steps by x^-1 w, x: (m, n)", {"x": ("m", "n")}),
        ("Sums of x and w: (N, D). w: (D,)", {"x": ("N", "D"), "w": ("D",)}),
        ("x, w: (N, D); the residual r = x - w (N,)", {"x": ("N", "D"), "w": ("N", "D")}),
        ("x and w (N, D), scaled by w: (N, 1)", {"x": ("N", "D"), "w": ("N", "D")}),
        ("x B T, w V B, q: B T D", {"x": ("B", "T"), "w": ("V", "B"), "q": ("B", "T", "D")}),
        ("x, q B T, w T (long)", {"x": ("B", "T"), "q": ("B", "T"), "w": ("T",)}),
        ("x B, T, w V, B, q of any shape", {"x": ("B", "T"), "w": ("V", "B")}),
        ("x a, w k q, scales x by w, q a k", {}),
        ("The sum of x[n] * f(w)[n], x, w: (N, V)", {"x": ("N", "V"), "w": ("N", "V")}),
        ("picks cumsum(w)[v] for each row\nw: (N, V)", {"w": ("N", "V")}),
        ("weighs a row with what x tells of its length (N,)\nx: (N, V)", {"x": ("N", "V")}),
        ("- q, k: (B, T)\n- k: (B, S)", {"q": ("B", "T"), "k": ("B", "S")}),
    ],
)
def test_shapes_in_a_text(text: str, shapes: dict[str, tuple[int | str, ...]]) -> None:
    assert documented_shapes(["x", "w", "q", "k", "a"], "", text) == shapes


def test_comments_and_annotations() -> None:
    source = (
        "def forward(ctx,\n            x,  # (B, T, D)\n            w: Tensor,  # [D, E]\n            eps=1e-5):\n"
        '    """A product."""\n    # q: (B, H)\n    y = x.view(B, T)  # (B, T)\n    return y\n'
    )
    found = documented_shapes(["x", "w", "q", "y"], source, annotations={"k": "Float[Tensor, 'b n=3 #c']"})
    assert found == {"x": ("B", "T", "D"), "w": ("D", "E"), "q": ("B", "H"), "k": ("b", 3, "c")}


@pytest.mark.parametrize(
    ("axis", "size"), [("L // 2 + 1", 4), ("2*L", 14), ("L-k", 5), ("L-7", None), ("M*2", None), ("L//0", None)]
)
def test_sizes_of_composed_axes(axis: str, size: int | None) -> None:
    assert size_of(axis, {"L": 7, "k": 2}) == size


class Homography(Function):
    """Maps points (N, 2) by matrix (3, 3), and divides by the third coordinate."""

    scale = 1.0

    @classmethod
    def forward(cls, ctx, points, matrix):
        ones = np.ones((len(points), 1))
        hat = np.concatenate([points.numpy(), ones], 1)
        image = hat @ matrix.numpy().T
        ctx.kept = hat, image, matrix.numpy()
        return tensor(image[:, :2] / image[:, 2:])

    @classmethod
    def backward(cls, ctx, g):
        hat, image, matrix = ctx.kept
        g = g.numpy()
        depth = -(g * image[:, :2]).sum(1, keepdims=True) / image[:, 2:] ** 2
        back = np.concatenate([g / image[:, 2:], cls.scale * depth], 1)
        return tensor((back @ matrix)[:, :2]), tensor(back.T @ hat)


class HomographyOff(Homography):
    """Maps points (N, 2) by matrix (3, 3)."""

    scale = 1.001


class Heads(Function):
    """Mixes the parts of each head of q: (B, T, D) by mixing: (T, T)."""

    factor = 1.0

    @classmethod
    def forward(cls, ctx, q, mixing, num_heads=2):
        if q.shape[2] % num_heads:
            raise ValueError("the heads do not fit")
        ctx.kept = q, mixing
        return mixing @ q

    @classmethod
    def backward(cls, ctx, g):
        q, mixing = ctx.kept
        return mixing.t() @ g, cls.factor * (g @ q.transpose(1, 2)).sum(0), None


class HeadsOff(Heads):
    """q: (B, T, D), mixing: (T, T)"""

    factor = 0.999


class Weighted(Function):
    """x: (B, D), t: (B, 1)"""

    factor = 1.0

    @classmethod
    def forward(cls, ctx, x, t):
        ctx.save_for_backward(x, t)
        return x * t.sin()

    @classmethod
    def backward(cls, ctx, g):
        x, t = ctx.saved_tensors
        return g * t.sin(), cls.factor * (g * x * t.cos()).sum(1, keepdim=True)


class WeightedOff(Weighted):
    """x: (B, D), t: (B, 1)"""

    factor = 1.001


@pytest.mark.parametrize(
    ("right", "wrong", "shapes", "at"),
    [
        (Homography, HomographyOff, [(4, 2), (3, 3)], "points"),
        (Heads, HeadsOff, [(2, 3, 4), (3, 3)], "mixing"),
        (Weighted, WeightedOff, [(3, 4), (3, 1)], "t"),
    ],
)
def test_inputs_have_the_documented_shapes(
    right: type[Function], wrong: type[Function], shapes: list[tuple[int, ...]], at: str
) -> None:
    case = gradcli.check(right, shrink=False, order=1).cases[0]
    assert case.verdict is Verdict.PASSED
    assert [spec.shape for spec in case.inputs if spec.kind == "tensor"] == shapes
    assert not [note for note in case.notes if "forward also accepts" in note]
    failed = gradcli.check(wrong, shrink=False, order=1).cases[0]
    assert failed.verdict is Verdict.FAILED
    assert at in {finding.input for finding in failed.findings}


class Misdocumented(Function):
    """x: (B, C, H, W), weight: (C, 7)"""

    @staticmethod
    def forward(ctx, x, weight):
        if x.dim() != 2:
            raise ValueError("x must be a matrix")
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g @ weight.t(), x.t() @ g


def test_other_shapes_are_found_where_the_documentation_is_wrong() -> None:
    case = gradcli.check(Misdocumented, shrink=False, order=1).cases[0]
    assert case.verdict is Verdict.PASSED
    assert [len(spec.shape or ()) for spec in case.inputs] == [2, 2]


class LastSteps(Function):
    """The steps that log_t was applied to x: log_t (S, S), x (B, T, S), lengths (B,), 3S of them in bias (3S,)."""

    factor = 1.0

    @classmethod
    def forward(cls, ctx, log_t, x, lengths, bias):
        if int(lengths.min()) < 1 or len(bias) != 3 * len(log_t):
            raise ValueError("wrong sizes or lengths")
        rows = np.arange(len(x))
        last = lengths.numpy() - 1
        held = np.where((last > 0)[:, None], x.numpy()[rows, last] @ log_t.numpy(), 0)
        ctx.kept = x, log_t, rows, last
        return tensor(held + bias.numpy().reshape(3, -1).sum(0))

    @classmethod
    def backward(cls, ctx, g):
        x, log_t, rows, last = ctx.kept
        g = g.numpy()
        held = g * (last > 0)[:, None]
        back = np.zeros(x.shape)
        back[rows, last] = held @ log_t.numpy().T
        return tensor(x.numpy()[rows, last].T @ held), tensor(back), None, tensor(cls.factor * np.tile(g.sum(0), 3))


class LastStepsOff(LastSteps):
    """log_t (S, S), x (B, T, S), lengths (B,), bias (3S,)"""

    factor = 1.001


def test_lengths_are_counts_that_reach_beyond_the_first_step() -> None:
    case = gradcli.check(LastSteps, shrink=False, order=1).cases[0]
    assert case.verdict is Verdict.PASSED
    shapes = {spec.name: spec.shape for spec in case.inputs}
    assert shapes == {"log_t": (3, 3), "x": (4, 5, 3), "lengths": (4,), "bias": (9,)}
    lengths = next(dict(spec.parameters) for spec in case.inputs if spec.name == "lengths")
    assert lengths["low"] == 1
    assert lengths["high"] > 2
    failed = gradcli.check(LastStepsOff, shrink=False, order=1).cases[0]
    assert {finding.input for finding in failed.findings} == {"bias"}


class Masked(Function):
    """scores: (B, T, S), keep: (T, S) bool"""

    fill = 0.0

    @classmethod
    def forward(cls, ctx, scores, keep):
        ctx.kept = keep
        return scores.masked_fill(~keep.bool(), 0.0)

    @classmethod
    def backward(cls, ctx, g):
        return g.masked_fill(~ctx.kept.bool(), cls.fill), None


class MaskedOff(Masked):
    """scores: (B, T, S), keep: (T, S) bool"""

    fill = 0.1


def test_a_mask_has_the_documented_rank() -> None:
    case = gradcli.check(Masked, shrink=False, order=1).cases[0]
    assert case.verdict is Verdict.PASSED
    assert [(spec.shape, spec.domain) for spec in case.inputs] == [((3, 4, 5), "normal"), ((4, 5), "boolean")]
    assert gradcli.check(MaskedOff, shrink=False, order=1).cases[0].verdict is Verdict.FAILED


class Grouped(Function):
    """q: (B, Hq, T), k: (B, Hkv, T), Hq a multiple of Hkv."""

    forgotten = False

    @classmethod
    def forward(cls, ctx, q, k):
        if q.shape[1] % k.shape[1]:
            raise ValueError("Hq must be a multiple of Hkv")
        ctx.kept = q.numpy(), k.numpy(), q.shape[1] // k.shape[1]
        return tensor(ctx.kept[0] * np.repeat(ctx.kept[1], ctx.kept[2], 1))

    @classmethod
    def backward(cls, ctx, g):
        q, k, n = ctx.kept
        back = (g.numpy() * q).reshape(len(k), k.shape[1], n, k.shape[2])
        return tensor(g.numpy() * np.repeat(k, n, 1)), tensor(back[:, :, 0] if cls.forgotten else back.sum(2))


class GroupedOff(Grouped):
    """q: (B, Hq, T), k: (B, Hkv, T)"""

    forgotten = True


def test_axes_of_different_names_are_made_unequal() -> None:
    case = gradcli.check(Grouped, shrink=False, order=1).cases[0]
    assert case.verdict is Verdict.PASSED
    (_, heads, _), (_, groups, _) = (spec.shape or () for spec in case.inputs)
    assert heads == 2 * groups
    assert gradcli.check(GroupedOff, shrink=False, order=1).cases[0].verdict is Verdict.FAILED


class Lattice(Function):
    """blank (T, U + 5) and emit (T, U)"""

    @staticmethod
    def forward(ctx, blank, emit):
        ctx.kept = blank.shape, emit.shape
        if blank.shape[1] < 5:
            raise ValueError("too short")
        return blank[:, : emit.shape[1]].sum() * 0.5 + emit[:, : blank.shape[1]].sum()

    @staticmethod
    def backward(ctx, g):
        (rows, long), (_, short) = ctx.kept
        found = np.zeros((rows, long))
        found[:, :short] = 0.5
        return tensor(found) * g, tensor(np.ones((rows, short))) * g


def test_sizes_computed_from_others_stay() -> None:
    case = gradcli.check(Lattice, shrink=False, order=1).cases[0]
    assert case.verdict is Verdict.PASSED
    (_, long), (_, short) = (spec.shape or () for spec in case.inputs)
    assert long == short + 5


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("K (Tensor): intrinsics (fx, fy, cx, cy), shape (4,)", (4,)),
        ("K: (fx, fy, cx, cy), of shape (4,)", (4,)),
        ("K: intrinsics (fx, fy, cx, cy) of shape (N, 4)", ("N", 4)),
        ("K: boxes (x1, y1, x2, y2), shape (N, 4)", ("N", 4)),
        ("K: (N, 4) quaternions (w, x, y, z)", ("N", 4)),
        ("K: quaternion (w, x, y, z)", None),
        ("K: color (r, g, b)", None),
        ("K: of shape (x, y, z)", ("x", "y", "z")),
        ("K: image (h, w)", ("h", "w")),
        ("K: (n, d), output of shape (n,)", ("n", "d")),
        ("K (n-1,), the lower diagonal", ("n-1",)),
        ("The mean of f (a + b) and K", None),
    ],
)
def test_names_of_components_are_no_sizes(text, shape):
    assert documented_shapes(["K"], "", text).get("K") == shape


@pytest.mark.parametrize(
    "words", ["(w w^T + I)^-1 x, w: (m, n), x: (m,), n > m", "x, w: (m, n), n > m, where x: (m,) is the error"]
)
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_a_description_of_its_own_wins_over_a_list(words: str, factor: float, verdict: Verdict) -> None:
    class Step(Function):
        @staticmethod
        def forward(ctx, w, x):
            ctx.save_for_backward(w, x)
            return w.t() @ x

        @staticmethod
        def backward(ctx, g):
            w, x = ctx.saved_tensors
            return factor * x[:, None] * g, w @ g

    Step.__doc__ = words
    (case,) = gradcli.check(Step, order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert [spec.shape for spec in case.inputs] == [(3, 4), (3,)]


@pytest.mark.parametrize(("factor", "verdict"), [(2, Verdict.PASSED), (2.002, Verdict.FAILED)])
def test_an_index_into_a_call_is_no_shape(factor: float, verdict: Verdict) -> None:
    class RowEnergy(Function):
        """The mean over rows of sum_k w[k] * square(x)[k].

        x: (N, K); w: (N, K) without gradient
        """

        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return (w * x * x).sum(-1).mean()

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return factor * g * w * x / x.shape[0], None

    (case,) = gradcli.check(RowEnergy, order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert [len(spec.shape or ()) for spec in case.inputs] == [2, 2]
