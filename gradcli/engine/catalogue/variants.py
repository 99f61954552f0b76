"""Rows for variants of operations, complex numbers, factors of matrices, and writing in place."""

from __future__ import annotations

from typing import Any

from gradcli.engine.catalogue.row import Domain, Operation, Sample, row

_PAIR: Any = [(3, 2)]


def _complex(t: Any, x: Any) -> Any:
    """Return real pairs as complex numbers."""
    return t.view_as_complex(x)


def _variants() -> list[Operation]:
    apart = Domain.APART
    return [
        row("clamp_tensors", lambda t, x, y: t.clamp(x, y - 1, y + 0.2), [(2, 3), (3,)], kinks="at the limits"),
        row("clamp_max", lambda t, x: t.clamp_max(x, 0.1), [(2, 3)], domain=apart, kinks="at the limit"),
        row("min", lambda _, x: x.min(), [(3,)], domain=apart, kinks="where equal"),
        row("fmod_number", lambda t, x: t.fmod(x, 0.7), [(3,)], domain=Domain.POSITIVE, kinks="at multiples"),
        row("remainder_number", lambda _, x: x % 0.7, [(3,)], domain=Domain.POSITIVE, kinks="at multiples"),
        row("masked_fill_tensor", lambda _, x, y: x.masked_fill(x > 0, y), [(2, 3), ()], domain=apart),
        row("index_copy", lambda t, x, y: x.index_copy(0, t.tensor([2, 0]), y), [(3, 2), (2, 2)]),
        row("diag_embed", lambda t, x: t.diag_embed(x), [(3,)], [(2, 2)]),
        row("pixel_unshuffle", lambda t, x: t.nn.functional.pixel_unshuffle(x, 2), [(1, 1, 4, 2)]),
        row("atan2_number", lambda t, x: t.atan2(x, t.ones_like(x)), [(3,)]),
        row("as_strided", lambda t, x: t.as_strided(x, (2, 2), (1, 2), 1), [(2, 3)]),
        row("reshape_columns", lambda _, x: x[:, :2].reshape(2, 1, 2), [(2, 3)]),
        row("cdist", lambda t, x, y: t.cdist(x, y), [(2, 3), (3, 3)], kinks="where equal"),
        row("pdist", lambda t, x: t.pdist(x), [(3, 2)], kinks="where equal"),
        row("logsumexp_dims", lambda _, x: x.logsumexp((0, 1)), [(2, 3)]),
        row("attention", lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v),
            [(1, 2, 3), (1, 2, 3), (1, 2, 2)]),
        row("conv_transpose1d", lambda t, x, w, b: t.nn.functional.conv_transpose1d(x, w, b, 2, 1, 1, 1, 2),
            [(1, 2, 3), (2, 2, 2), (2,)]),
    ]  # fmt: skip


def _writing() -> list[Operation]:
    def filled(_: Any, x: Any, y: Any) -> Any:
        z = x * 2
        z[0].fill_(y)
        return z * z

    def zeroed(_: Any, x: Any) -> Any:
        z = x * 2
        z[1:].zero_()
        return z * z

    def copied(_: Any, x: Any, y: Any) -> Any:
        z = x * 2
        z[:, 0].copy_(y)
        return z * z * y.sum()

    def twice(_: Any, x: Any, y: Any) -> Any:
        z = x.clone()
        z.view(-1)[1:3] *= y
        z.t()[0].sub_(y[0])
        return z * z

    def turned(_: Any, x: Any) -> Any:
        z = (x * 2).t_().unsqueeze_(0).transpose_(0, 1)
        return z.squeeze_(1) * x.t() + (x * 1).unsqueeze(0).squeeze_()

    return [
        row("turned_in_place", turned, [(3, 3)]),
        row("fill_", filled, [(2, 3), ()]),
        row("zero_", zeroed, [(3, 2)]),
        row("copy_", copied, [(3, 2), (3,)]),
        row("views_in_place", twice, [(2, 2), (2,)]),
    ]


def _complex_numbers() -> list[Operation]:
    def through(operation: Any) -> Any:
        return lambda t, *xs: t.view_as_real(operation(t, *[_complex(t, x) for x in xs]))

    return [
        row("complex_mul", through(lambda _, z, w: z * w * z.conj()), [(3, 2), (3, 2)]),
        row("complex_div", through(lambda _, z, w: z / w), [(2, 2), (2, 2)]),
        row("complex_exp", through(lambda _, z: z.exp() + z.sin()), _PAIR),
        row("complex_pow", through(lambda _, z: z**3 + z**-1), _PAIR),
        row("complex_numbers", lambda t, x: t.view_as_complex(x).real.sin(), _PAIR),
        row("complex_sgn", through(lambda _, z: z.sgn()), _PAIR, kinks="at 0"),
        row("complex_abs", lambda t, x: _complex(t, x).abs(), _PAIR, kinks="at 0"),
        row("complex_angle", lambda t, x: _complex(t, x).angle(), _PAIR, domain=Domain.POSITIVE),
        row("complex_parts", lambda t, x, y: t.view_as_real(t.complex(x, y).exp()), [(3,), (3,)]),
        row("complex_real", lambda t, x: _complex(t, x).real * _complex(t, x).imag, _PAIR),
        row("complex_cast", lambda t, x: t.view_as_real(x.to(t.complex128) * 1j), [(3,)]),
        row("complex_matmul", through(lambda _, z, w: z @ w.mH), [(2, 2, 2), (2, 2, 2)]),
        row("polar", lambda t, x, y: t.view_as_real(t.polar(x, y)), [(3,), (3,)], domain=Domain.POSITIVE),
    ]


def _factors() -> list[Operation]:
    tall, wide = Sample(shape=(3, 2)), Sample(shape=(2, 3))

    def factors(t: Any, x: Any) -> Any:
        """Return what does not depend on the signs of the singular vectors."""
        u, s, vh = t.linalg.svd(x, full_matrices=False)
        return u * u, s, vh * vh

    return [
        row("svd", factors, [tall], [wide], [(2, 2, 2)]),
        row("svdvals", lambda t, x: t.linalg.svdvals(x), [tall]),
        row("qr", lambda t, x: tuple(t.linalg.qr(x)), [tall], [wide], [(2, 2, 2)]),
        row("pinv", lambda t, x: t.linalg.pinv(x), [tall], [wide]),
        row("lstsq", lambda t, x, y: t.linalg.lstsq(x, y).solution, [tall, (3, 2)]),
    ]


def variant_operations() -> tuple[Operation, ...]:
    """Return these rows."""
    return (*_variants(), *_writing(), *_complex_numbers(), *_factors())
