"""Drawings of a page as inline SVG: heat maps of a Jacobian, the error against the step, a scale of resolutions."""

import math
from collections.abc import Callable, Sequence

from gradcli.figures import ErrorCurve, JacobianBlock, Rows
from gradcli.reporters.escaping import markup, one_line
from gradcli.reporters.wording import magnitude, number

_POSITIVE, _NEGATIVE, _ERROR = "#d55e00", "#0072b2", "#a0277d"
"""Orange, blue and purple of Okabe and Ito's palette, told apart with every kind of colour vision."""
_SIDE = 260
_DECADES = 16.0

Paint = Callable[[float], tuple[str, float]]


def heat_maps(block: JacobianBlock) -> str:
    """Three maps side by side: what backward returned, what was measured, and the error in units of its bound."""
    name = one_line(block.input)
    about = f"∂output {block.output} / ∂{name}"
    if block.order > 1:
        about += f", order {block.order}"
    top = max(
        (abs(v) for rows in (block.claimed, block.numeric) for row in rows for v in row if math.isfinite(v)), default=0
    )
    signed = _signed(top)
    errors = tuple(
        tuple(_in_bounds(c, n, b) for c, n, b in zip(*three, strict=True))
        for three in zip(block.claimed, block.numeric, block.bound, strict=True)
    )
    maps = (
        _heat(f"returned: {about}", block, block.claimed, signed),
        _heat(f"numeric: {about}", block, block.numeric, signed),
        _heat("error, in units of its bound (logarithmic)", block, errors, _above_bound),
    )
    return f'<div class="figures">{"".join(maps)}</div>'


def _heat(caption: str, block: JacobianBlock, values: Rows, paint: Paint) -> str:
    rows, columns = len(block.rows), len(block.columns)
    size = max(4.0, min(28.0, _SIDE / max(rows, columns, 1)))
    width, height = columns * size, rows * size
    cells = "".join(
        _cell(column * size, row * size, size, value, f"[{block.rows[row]}, {block.columns[column]}]", paint)
        for row, line in enumerate(values)
        for column, value in enumerate(line)
    )
    label = markup(f"{caption}: {rows} rows for the output, {columns} columns for {one_line(block.input)}")
    return (
        f'<figure><svg role="img" aria-label="{label}" width="{width + 2:g}" height="{height + 2:g}" '
        f'viewBox="-1 -1 {width + 2:g} {height + 2:g}">'
        f'<rect class="axis" fill="none" width="{width:g}" height="{height:g}"/>{cells}</svg>'
        f"<figcaption>{markup(caption)}</figcaption></figure>"
    )


def _cell(x: float, y: float, size: float, value: float, place: str, paint: Paint) -> str:
    colour, strength = paint(value)
    shown = f"{place} = {number(value, 6)}"
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{size:g}" height="{size:g}" fill="{colour}" fill-opacity="{strength:.2f}">'
        f"<title>{shown}</title></rect>"
    )


def _signed(top: float) -> Paint:
    def paint(value: float) -> tuple[str, float]:
        if not math.isfinite(value):
            return _ERROR, 1.0
        return (_POSITIVE if value > 0 else _NEGATIVE), (abs(value) / top if top else 0.0)

    return paint


def _above_bound(ratio: float) -> tuple[str, float]:
    """Nothing within the bound, full colour from 1e8 times the bound."""
    if math.isnan(ratio) or ratio <= 1:
        return _ERROR, 0.0
    return _ERROR, 1.0 if math.isinf(ratio) else min(1.0, 0.15 + math.log10(ratio) / 8)


def _in_bounds(claimed: float, numeric: float, bound: float) -> float:
    if math.isinf(bound):
        return 0.0
    gap = abs(claimed - numeric)
    if math.isnan(gap):
        return math.inf
    return gap / bound if bound else (math.inf if gap else 0.0)


def error_chart(curve: ErrorCurve) -> str:
    """Both distances against the step, on logarithmic axes: from the slope of forward, and from what backward claims.

    A right claim falls as the slope does, until rounding lifts both; a wrong one stays where its error is.
    """
    size = max(abs(curve.reference), abs(curve.claimed), 1e-300)
    measured = [abs(slope - curve.reference) / size for slope in curve.slopes]
    claimed = [abs(slope - curve.claimed) / size for slope in curve.slopes]
    width, height, left, top = 360.0, 190.0, 44.0, 8.0
    first, last = math.log2(curve.steps[0]), math.log2(curve.steps[-1])

    def x(step: float) -> float:
        return left + (width - left - 8) * (math.log2(step) - first) / (last - first)

    def y(error: float) -> float:
        return top + (height - top - 30) * min(_DECADES, max(0.0, -math.log10(max(error, 1e-300)))) / _DECADES

    grid = "".join(
        f'<line class="axis" x1="{left:g}" x2="{width - 8:g}" y1="{y(10.0**-k):g}" y2="{y(10.0**-k):g}"/>'
        f'<text x="{left - 6:g}" y="{y(10.0**-k) + 4:g}" text-anchor="end">{"1" if k == 0 else f"1e-{k}"}</text>'
        for k in range(0, int(_DECADES) + 1, 4)
    )
    ends = (
        f'<text x="{left:g}" y="{height - 14:g}">step {magnitude(curve.steps[0])}</text>'
        f'<text x="{width - 8:g}" y="{height - 14:g}" text-anchor="end">{magnitude(curve.steps[-1])}</text>'
    )
    about = (
        f"relative error of central differences against the step size: the slope of forward is "
        f"{number(curve.reference, 8)} ± {magnitude(curve.bound)}, backward gives {number(curve.claimed, 8)}"
    )
    lines = _line("curve", curve.steps, measured, x, y) + _line("claimed", curve.steps, claimed, x, y)
    return (
        f'<figure><svg role="img" aria-label="{markup(about)}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">{grid}{ends}{lines}</svg>'
        f"<figcaption>{markup(about)}. Solid: error relative to that slope. Dashed: error relative to what backward "
        "gives; if the gradient is wrong, the dashed line does not fall with the step size.</figcaption></figure>"
    )


def _line(
    kind: str, steps: Sequence[float], errors: Sequence[float], x: Callable[[float], float], y: Callable[[float], float]
) -> str:
    points = [(x(step), y(error)) for step, error in zip(steps, errors, strict=True) if math.isfinite(error)]
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
    return f'<polyline class="{kind}" fill="none" points="{path}"/>' if points else ""


def resolution_scale(resolution: float, significance: float) -> str:
    """One axis from 1 to 1e-16: the smallest relative error that would have failed, and the smallest that matters."""
    width, left = 360.0, 8.0

    def x(value: float) -> float:
        return left + (width - 2 * left) * min(_DECADES, max(0.0, -math.log10(max(value, 1e-300)))) / _DECADES

    ticks = "".join(
        f'<line class="axis" x1="{x(10.0**-k):g}" x2="{x(10.0**-k):g}" y1="22" y2="28"/>'
        f'<text x="{x(10.0**-k):g}" y="42" text-anchor="middle">{"1" if k == 0 else f"1e-{k}"}</text>'
        for k in range(0, int(_DECADES) + 1, 4)
    )
    about = (
        f"resolution {magnitude(resolution)}: the smallest relative error that would have been detected; "
        f"failure threshold {magnitude(significance)}: a smaller relative error is not counted as a failure"
    )
    marks = (
        f'<line class="claimed" x1="{x(significance):g}" x2="{x(significance):g}" y1="8" y2="28"/>'
        f'<circle class="dot" cx="{x(resolution):g}" cy="25" r="4"/>'
    )
    return (
        f'<figure><svg role="img" aria-label="{markup(about)}" '
        f'width="{width:g}" height="46" viewBox="0 0 {width:g} 46">'
        f'<line class="axis" x1="{left:g}" x2="{width - left:g}" y1="25" y2="25"/>{ticks}{marks}</svg>'
        f"<figcaption>{markup(about)}</figcaption></figure>"
    )
