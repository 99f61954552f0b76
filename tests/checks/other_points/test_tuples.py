"""Tuples of numbers at other values, with entries that differ, and settings that one argument holds together."""

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

import pytest

from gradcli.cases import Argument
from gradcli.checks.other_points.settings import settings_of
from gradcli.checks.other_points.tuples import are_numbers, tuples_to_try
from gradcli.verdict import Verdict
from tests.checks.frameworks import constant, decided, tensor

IMAGE = tensor("x", [[0.6, -1.2, 0.9, -1.7, 0.2], [0.4, 1.1, -0.8, 0.3, 1.9], [1.5, -0.3, 0.7, -0.9, 0.1]])


def box_sum(ns, mistake=None):
    class BoxSum(ns.autograd.Function):
        """The sum of each window."""

        @staticmethod
        def forward(ctx, x, kernel=(2, 2)):
            ctx.kernel, ctx.shape = kernel, x.shape
            rows, columns = x.shape[0] - kernel[0] + 1, x.shape[1] - kernel[1] + 1
            return sum(x[i : i + rows, j : j + columns] for i in range(kernel[0]) for j in range(kernel[1]))

        @staticmethod
        def backward(ctx, g):
            high, wide = ctx.kernel[::-1] if mistake == "exchanged" else ctx.kernel
            gx = ns.zeros(ctx.shape, dtype=g.dtype)
            for i in range(high):
                for j in range(wide):
                    part = gx[i : i + g.shape[0], j : j + g.shape[1]]
                    part += g[: part.shape[0], : part.shape[1]]
            return gx, None

    return BoxSum


def rolled(ns, mistake=None):
    class Rolled(ns.autograd.Function):
        """Each axis moved on by its own number."""

        @staticmethod
        def forward(ctx, x, shifts=(1, 1)):
            ctx.shifts = shifts
            return ns.roll(x, shifts, (0, 1))

        @staticmethod
        def backward(ctx, g):
            one, two = ctx.shifts[::-1] if mistake == "exchanged" else ctx.shifts
            return ns.roll(g, (-one, -two), (0, 1)), None

    return Rolled


def summed(ns, mistake=None):
    class Summed(ns.autograd.Function):
        """A mean over axes."""

        @staticmethod
        def forward(ctx, x, dims=(0, 1)):
            ctx.dims, ctx.shape = dims, x.shape
            return x.mean(dims)

        @staticmethod
        def backward(ctx, g):
            count = 1
            for dim in (0, 1) if mistake == "all axes" else ctx.dims:
                count *= ctx.shape[dim]
            for dim in sorted(dim % len(ctx.shape) for dim in ctx.dims):
                g = g.unsqueeze(dim)
            return g.expand(ctx.shape) / count, None

    return Summed


def limited(ns, mistake=None):
    class Limited(ns.autograd.Function):
        """A straight line between two limits."""

        @staticmethod
        def forward(ctx, x, span=(-1.0, 1.0)):
            ctx.span = span
            return (x - span[0]) / (span[1] - span[0])

        @staticmethod
        def backward(ctx, g):
            return g / (2 if mistake == "width" else ctx.span[1] - ctx.span[0]), None

    return Limited


CASES = [(box_sum, "exchanged"), (rolled, "exchanged"), (summed, "all axes"), (limited, "width")]


@pytest.mark.parametrize("made", [made for made, _ in CASES], ids=lambda made: made.__name__)
def test_a_right_function_passes_without_a_note(backend, ns, made):
    verdict, evidence = decided(backend, made(ns), IMAGE, order=1)
    assert verdict is Verdict.PASSED
    assert not [e.note for e in evidence if e.check == "constants" and e.note]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("made", "mistake"), CASES, ids=lambda each: getattr(each, "__name__", each))
def test_its_wrong_twin_fails_at_another_tuple(backend, ns, made, mistake):
    verdict, evidence = decided(backend, made(ns, mistake), IMAGE, order=1)
    assert verdict is Verdict.FAILED
    assert {e.check for e in evidence if e.verdict is Verdict.FAILED} == {"constants"}


def test_a_tuple_that_is_given_is_varied_as_well(backend, ns):
    given = constant("kernel", (1, 1))
    assert decided(backend, box_sum(ns), IMAGE, given, order=1)[0] is Verdict.PASSED
    assert decided(backend, box_sum(ns, "exchanged"), IMAGE, given, order=1)[0] is Verdict.FAILED


@pytest.mark.parametrize(
    ("name", "value", "first"),
    [
        ("kernel", (2, 2), (2, 3)),
        ("stride", (1, 1), (2, 3)),
        ("padding", (0, 0), (1, 2)),
        ("kernel", (3,), (4,)),
        ("dims", (0, 1), (1, 0)),
        ("dim", (-1,), (0,)),
        ("limits", (0.0, 0.4), (0.3, 0.375)),
        ("betas", (0.5, 0.5), (0.78125, 0.375)),
    ],
)
def test_the_first_other_value(name, value, first):
    argument = Argument(name=name, value=value, is_tensor=False)
    assert are_numbers(argument)
    found = tuples_to_try(argument, [IMAGE, argument])
    assert value not in found
    assert found[0] == pytest.approx(first)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("normalized_shape", (4, 5)),
        ("output_size", (4, 5)),
        ("kernel", ()),
        ("labels", (1, 2, 3, 1, 2)),
        ("pair", (1, 2.0)),
        ("flags", (True, False)),
        ("words", ("a", "b")),
        ("kernel", [2, 2]),
    ],
)
def test_other_tuples_stay(name, value):
    assert not are_numbers(Argument(name=name, value=value, is_tensor=False))


ROWS = tensor("x", [[0.6, -1.2, 0.9], [0.4, 1.1, -0.8]])


class Border(Enum):
    """What stands beyond the end of a row."""

    NOTHING = "nothing"
    LAST = "last"
    FIRST = "first"


class Rank(IntEnum):
    """Members that are whole numbers too."""

    LOW = 1
    HIGH = 5


class Pair(NamedTuple):
    """A slope and a flag."""

    slope: float
    cubed: bool


@dataclass(frozen=True)
class Held:
    """The same in a dataclass."""

    slope: float = 0.5
    cubed: bool = False


def stepped(ns, mistake):
    class Stepped(ns.autograd.Function):
        """The difference to the next entry."""

        @staticmethod
        def forward(ctx, x, border=Border.NOTHING):
            ctx.border = border
            ends = {Border.NOTHING: 0 * x[:, :1], Border.LAST: x[:, -1:], Border.FIRST: x[:, :1]}
            return ns.cat([x[:, 1:], ends[border]], 1) - x

        @staticmethod
        def backward(ctx, g):
            moved = ns.cat([0 * g[:, :1], g[:, :-1]], 1)
            kept = ns.ones(3, dtype=g.dtype)
            if ctx.border is Border.LAST:
                kept[2] = 0
            if ctx.border is Border.FIRST and not mistake:
                moved[:, 0] += g[:, 2]
            return moved - g * kept, None

    return Stepped


def bent(ns, mistake, default, read):
    class Bent(ns.autograd.Function):
        """A slope times x or its cube."""

        @staticmethod
        def forward(ctx, x, how=default):
            slope, cubed = read(how)
            ctx.save_for_backward(x)
            ctx.slope, ctx.cubed = slope, cubed
            return slope * (x**3 if cubed else x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            slope = 0.5 if mistake == "slope" else ctx.slope
            return slope * g * ((2 if mistake == "flag" else 3) * x * x if ctx.cubed else 1), None

    return Bent


HOLDERS = [
    ({"slope": 0.5, "cubed": False}, lambda how: (how["slope"], how["cubed"])),
    ((0.5, False), tuple),
    (Pair(0.5, False), tuple),
    (Held(), lambda how: (how.slope, how.cubed)),
]


@pytest.mark.parametrize("mistake", [None, "member"])
def test_each_member_of_an_enumeration_is_tried(backend, ns, mistake):
    verdict, evidence = decided(backend, stepped(ns, mistake), ROWS, order=1)
    wrong = {e.check for e in evidence if e.verdict is Verdict.FAILED}
    assert (verdict, wrong) == ((Verdict.FAILED, {"constants"}) if mistake else (Verdict.PASSED, set()))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("mistake", [None, "slope", "flag"])
@pytest.mark.parametrize(("default", "read"), HOLDERS, ids=["dict", "tuple", "named", "dataclass"])
def test_each_entry_of_an_argument_is_varied(backend, ns, default, read, mistake):
    verdict, evidence = decided(backend, bent(ns, mistake, default, read), ROWS, order=1)
    wrong = {e.check for e in evidence if e.verdict is Verdict.FAILED}
    assert (verdict, wrong) == ((Verdict.FAILED, {"constants"}) if mistake else (Verdict.PASSED, set()))


@pytest.mark.parametrize(
    ("value", "first"),
    [
        ({"low": 0, "high": 1}, [{"low": 3, "high": 4}, {"low": 0, "high": 2}]),
        ({"eps": 1e-6, "word": "a"}, [{"eps": 7.5e-7, "word": "a"}]),
        ({"inside": {"inplace": False, "scale": 0.5}}, [{"inside": {"inplace": False, "scale": 0.375}}]),
        (Rank.LOW, [Rank.HIGH]),
        ((1, 2.0), [(2, 3.0), (1, 1.5)]),
        ((True, False), [(False, False), (True, True)]),
        ((2, 3), []),
        ([0.5, 0.25, 0.125], []),
        ("word", []),
        (2.0, []),
        (None, []),
    ],
)
def test_the_first_other_settings(value, first):
    argument = Argument(name="how", value=value, is_tensor=False)
    others = [[other.value for _, other in setting.others([argument])] for setting in settings_of(argument)]
    assert [found[0] for found in others if found] == first


def test_settings_that_were_given_stay():
    assert not settings_of(Argument(name="how", value={"cubed": True}, is_tensor=False, fixed=True))
