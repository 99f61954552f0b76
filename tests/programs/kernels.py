"""Kernels, right and wrong, and Functions that launch them: imported only where Triton is installed."""

import torch
import triton
import triton.language as tl
from torch.autograd import Function
from triton.language.extra.libdevice import erf, tanh


@triton.jit
def square_sum_kernel(x, y, n, BLOCK: tl.constexpr, MASK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASK:
        value = tl.load(x + at, mask=at < n, other=0.0)
    else:
        value = tl.load(x + at)
    tl.store(y + tl.program_id(0), tl.sum(value * value))


@triton.jit
def twice_kernel(x, y, g, n, BLOCK: tl.constexpr, MASK: tl.constexpr, STORE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASK:
        value = tl.load(x + at, mask=at < n)
    else:
        value = tl.load(x + at)
    result = 2 * tl.load(g) * value
    if STORE:
        tl.store(y + at, result, mask=at < n)
    else:
        tl.store(y + at, result)


def sums(*, loads=True, reloads=True, stores=True):
    """The sum of squares, in blocks of four; the flags say which accesses are masked."""

    class Sum(Function):
        @staticmethod
        def forward(ctx, x):
            x = x.contiguous()
            ctx.save_for_backward(x)
            n = x.numel()
            y = x.new_empty(triton.cdiv(n, 4))
            square_sum_kernel[(triton.cdiv(n, 4),)](x, y, n, BLOCK=4, MASK=loads)
            return y.sum()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            y, n = torch.empty_like(x), x.numel()
            twice_kernel[(triton.cdiv(n, 4),)](x, y, g.contiguous(), n, BLOCK=4, MASK=reloads, STORE=stores)
            return y

    return Sum


Sum = sums()
SumReadsOutside = sums(loads=False)
SumReadsOutsideAndDropsIt = sums(reloads=False)
SumWritesOutside = sums(stores=False)


@triton.jit
def rows_kernel(x, y, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr, MASK: tl.constexpr, SCALE: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLS)
    at = row[:, None] * cols + column[None, :]
    inside = column[None, :] < cols
    if MASK:
        inside = (row[:, None] < rows) & inside
    tl.store(y + at, SCALE * tl.load(x + at, mask=inside), mask=inside)


def rowwise(*, forward=True, backward=True, slope=3.0):
    """Rows times three, two at a time; the flags say whether the rows are masked, and `slope` what backward takes."""

    def run(x, mask, scale=3.0):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, cols = x.shape
        rows_kernel[(triton.cdiv(rows, 2),)](x, y, rows, cols, ROWS=2, COLS=4, MASK=mask, SCALE=scale)
        return y

    class Rows(Function):
        @staticmethod
        def forward(ctx, x):
            return run(x, forward)

        @staticmethod
        def backward(ctx, g):
            return run(g, backward, slope)

    return Rows


Rows = rowwise()
RowsForwardUnmasked = rowwise(forward=False)
RowsBackwardUnmasked = rowwise(backward=False)
RowsBackwardWrong = rowwise(slope=3.5)


@triton.jit
def gather_kernel(table, index, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    place = tl.load(index + at, mask=at < n, other=0)
    tl.store(y + at, tl.load(table + place, mask=at < n), mask=at < n)


@triton.jit
def scatter_kernel(g, index, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    place = tl.load(index + at, mask=at < n, other=0)
    tl.atomic_add(y + place, tl.load(g + at, mask=at < n), mask=at < n)


class Gather(Function):
    """A row of a table for each index: an index past the end of the table reads outside of it."""

    @staticmethod
    def forward(ctx, table, index):
        table, index = table.contiguous(), index.contiguous()
        ctx.save_for_backward(index)
        ctx.size = table.shape[0]
        y = table.new_empty(index.shape[0])
        gather_kernel[(1,)](table, index, y, index.shape[0], BLOCK=8)
        return y

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        table = g.new_zeros(ctx.size)
        scatter_kernel[(1,)](g.contiguous(), index, table, index.shape[0], BLOCK=8)
        return table, None


@triton.jit
def scaled_tanh_kernel(x, y, scale, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tanh(value * scale.to(tl.float64)), mask=at < n)


@triton.jit
def scaled_tanh_backward_kernel(y, g, dx, scale, n, BLOCK: tl.constexpr, SQUARED: tl.constexpr):
    at = tl.arange(0, BLOCK)
    out = tl.load(y + at, mask=at < n)
    slope = (1 - out * out) if SQUARED else (1 - out)
    tl.store(dx + at, tl.load(g + at, mask=at < n) * slope * scale.to(tl.float64), mask=at < n)


def scaled_tanh(*, squared=True):
    """tanh of a multiple, by the device library and a number that the kernel converts."""

    class ScaledTanh(Function):
        @staticmethod
        def forward(ctx, x, scale=0.75):
            x = x.contiguous()
            y = torch.empty_like(x)
            scaled_tanh_kernel[(1,)](x, y, scale, x.numel(), BLOCK=16)
            ctx.save_for_backward(y)
            ctx.scale = scale
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            dx = torch.empty_like(y)
            scaled_tanh_backward_kernel[(1,)](y, g.contiguous(), dx, ctx.scale, y.numel(), BLOCK=16, SQUARED=squared)
            return dx, None

    return ScaledTanh


ScaledTanh = scaled_tanh()
ScaledTanhWithoutSquare = scaled_tanh(squared=False)


@triton.jit
def erf_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, erf(tl.load(x + at, mask=at < n)), mask=at < n)


@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.jit
def triple_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 3 * tl.load(x + at, mask=at < n), mask=at < n)


def triple(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    triple_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y


class Autotuned(Function):
    """Three times x, by a kernel of which an autotuner chooses the block."""

    @staticmethod
    def forward(ctx, x):
        return triple(x)

    @staticmethod
    def backward(ctx, g):
        return triple(g)


@triton.jit
def assembly_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    moved = tl.inline_asm_elementwise("mov.b64 $0, $1;", "=l,l", [value], dtype=tl.float64, is_pure=True, pack=1)
    tl.store(y + at, moved, mask=at < n)


class Assembly(Function):
    """A copy by inline assembly, which only a GPU runs."""

    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        assembly_kernel[(1,)](x, y, x.numel(), BLOCK=16)
        return y

    @staticmethod
    def backward(ctx, g):
        return g


class AsksForAGpu(Function):
    """Counts the multiprocessors of a GPU that is not there."""

    @staticmethod
    def forward(ctx, x):
        return x * torch.cuda.get_device_properties(x.device).multi_processor_count

    @staticmethod
    def backward(ctx, g):
        return g


@triton.jit
def to_bfloat16_kernel(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at).to(tl.bfloat16))


@triton.jit
def sigmoid_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, 1 / (1 + tl.exp(-value)), mask=at < n)


@triton.jit
def sigmoid_backward_kernel(x, g, dx, n, BLOCK: tl.constexpr, FACTOR: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    y = 1 / (1 + tl.exp(-value))
    tl.store(dx + at, FACTOR * tl.load(g + at, mask=at < n).to(tl.float32) * y * (1 - y), mask=at < n)


def in_float32(factor):
    """A sigmoid that is computed in float32 whatever it is given, and a gradient that is off by a factor."""

    class InFloat32(Function):
        @staticmethod
        def forward(ctx, x):
            x = x.contiguous()
            ctx.save_for_backward(x)
            y = torch.empty_like(x)
            sigmoid_kernel[(1,)](x, y, x.numel(), BLOCK=16)
            return y

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            dx = torch.empty_like(x)
            sigmoid_backward_kernel[(1,)](x, g.contiguous(), dx, x.numel(), BLOCK=16, FACTOR=factor)
            return dx

    return InFloat32


InFloat32 = in_float32(1.0)
InFloat32OffByAThird = in_float32(4 / 3)


@triton.jit
def bfloat16_kernel(x, w, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value, weight = tl.load(x + at), tl.load(w + at)
    tl.store(y + at, tl.where(value > weight, value * weight - 0.5 * value, -value / 3))


@triton.jit
def turn_kernel(x, c, s, n, SIGN: tl.constexpr, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < n // 2
    one, two = tl.load(x + at, mask=inside), tl.load(x + at + n // 2, mask=inside)
    sign = tl.where(tl.program_id(0) == WRONG, -SIGN, SIGN)
    tl.store(x + at, one * c - sign * two * s, mask=inside)
    tl.store(x + at + n // 2, two * c + SIGN * one * s, mask=inside)


def turned(*, wrong=-1):
    """Halves of rows turned by an angle, in place on a copy; backward has the wrong sign in a tile of one row."""

    def turn(x, sign, row):
        x = x.transpose(0, 1).contiguous()  # a copy that the graph knows, unlike what the kernel does to it
        turn_kernel[(x.shape[0],)](x, 0.6, 0.8, x.shape[1], SIGN=sign, WRONG=row, BLOCK=4)
        return x.transpose(0, 1)

    class Turned(Function):
        @staticmethod
        def forward(ctx, x):
            return turn(x, 1, -1)

        @staticmethod
        def backward(ctx, g):
            return turn(g, -1, wrong)

    return Turned


Turned = turned()
TurnedWithATileOff = turned(wrong=1)
