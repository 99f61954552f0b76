"""Axes that forward cuts into equal parts, as recurrent cells do with their gates: sizes that are multiples of others.

A matrix of four gates has four times as many rows as there are hidden units. No message says so: it names the size of
a part. A part's size tells which axis was cut, and the size it should have had tells how long that axis must be.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

_CUT = r"(?:chunk|tensor_split|array_split|split)\([^()\d]*(\d+)"
_SLICED = r":[ \t]*(\d) ?\* ?\w+|(?<![\w.])(\d) ?\* ?\w+(?:\.\w+)?(?:\[-?\d\])?[ \t]*:"
_UNPACKED = r"values to unpack \(expected (\d+)"
_LEFT_OUT = r"[\[,]\s*(?:(\d)\s*:|:\s*-(\d))\s*(?=[\],])"
_MOST = 6
_NAMED_HALF = re.compile(r"\b(\w*hal(?:f|ves)\w*)\s*=[^=\n]*//\s*2\b")
_ROTARY = re.compile(r"[Rr]otary|(?<![A-Za-z])rope(?![a-z])|R[Oo]P[Ee]|Rope(?![a-z])|rotate_?half|RotateHalf")

Pairs = Sequence[tuple[int, int]]
Sizes = Mapping[int, int]


def parts_of(forward: str) -> tuple[int, ...]:
    """Into how many parts the source of forward may cut an axis: `chunk(4)`, or a last slice from `3 * hidden` on."""
    cut = {int(number) for number in re.findall(_CUT, forward)}
    sliced = max((int(end or start) for end, start in re.findall(_SLICED, forward)), default=0)
    found = cut | ({sliced, sliced + 1} if sliced > 1 else set())
    return tuple(sorted(number for number in found if 2 <= number <= _MOST))


def cuts_in_halves(source: str, name: str = "") -> bool:
    """Whether source calls the two parts of an axis its halves: `x[..., :half]` and `x[..., half:]`, or a rotary one.

    Such an axis has an even size. Forward often runs with an odd one too, where its parts are no pairs.

    Args:
        source: of forward and its helpers.
        name: of the Function.
    """
    if re.search(r"//\s*2\b|\bchunk\((?:\w+,\s*)?2\b", source) is None:
        return False
    parts = ((rf":\s*{half}\s*[\],]", rf"[\[,]\s*{half}\s*:\s*[\],]") for half in _NAMED_HALF.findall(source))
    return any(re.search(first, source) and re.search(second, source) for first, second in parts) or (
        _ROTARY.search(f"{name} {source}") is not None
    )


def left_out_of(forward: str) -> tuple[int, ...]:
    """How many entries slices in the source of forward leave out at an end of an axis: 1 in `x[1:]` and `x[:, :-1]`."""
    return tuple(sorted({int(one or other) for one, other in re.findall(_LEFT_OUT, forward)} - {0}))


def lengthened(pairs: Pairs, sizes: Sizes, left_out: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Axes whose rest, without the entries left out, should have another size: each with the size that gives this."""
    for one, other in pairs:
        for wanted, rest in ((one, other), (other, one)):
            for less in left_out:
                yield from ((axis, wanted + less) for axis, size in sizes.items() if size - less == rest)


def unpacked_parts(message: str) -> tuple[int, ...]:
    """The number of parts that a failed unpacking asked for."""
    return tuple(int(number) for number in re.findall(_UNPACKED, message))


def multiples(pairs: Pairs, sizes: Sizes, parts: Sequence[int]) -> Iterator[tuple[int, int, int | None]]:
    """Axes that may have to be a multiple of another.

    Args:
        pairs: sizes that a message says should be equal.
        sizes: the size of every class of axes.
        parts: numbers of parts that an axis may be cut into.

    Yields:
        A class, the size it should have, and the class whose size it is a multiple of (None where it is one of a part).
    """
    for one, other in pairs:
        for wanted, part in ((one, other), (other, one)):
            for count in parts:
                cut = [axis for axis, size in sizes.items() if part in _pieces(size, count)]
                units = [axis for axis, size in sizes.items() if size == wanted]
                yield from ((axis, count * wanted, unit) for axis in cut for unit in units if unit != axis)
                uneven = (axis for axis in cut if sizes[axis] % count and wanted in _pieces(sizes[axis], count))
                yield from ((axis, count * -(-sizes[axis] // count), None) for axis in uneven)


def alike(pairs: Pairs, sizes: Sizes, parts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Two axes whose parts should be equal, and so the axes themselves."""
    for one, other in pairs:
        for count in parts:
            first = [axis for axis, size in sizes.items() if one in _pieces(size, count)]
            second = [axis for axis, size in sizes.items() if other in _pieces(size, count)]
            yield from ((a, b) for a in first for b in second if a != b)


def _pieces(size: int, count: int) -> tuple[int, ...]:
    """The lengths of the parts of an axis; nothing is left where slices begin behind its end."""
    whole = -(-size // count)
    return (whole, max(0, size - (count - 1) * whole)) if size else ()
