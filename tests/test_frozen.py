"""Records behave as frozen dataclasses of the standard library do, method by method."""

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import Any

import pytest

from gradcli import frozen

KINDS = {"ours": frozen.dataclass, "standard": dataclasses.dataclass}


def _kinds(make: Any) -> dict[str, type]:
    class Point:
        x: float
        y: float = 2.0
        names: tuple[str, ...] = field(default_factory=tuple)
        note: str = field(default="", compare=False, repr=False)
        made: list[int] = field(init=False, default_factory=list, compare=False)

        def __post_init__(self) -> None:
            self.made.append(1)

        def length(self) -> float:
            """A method."""
            return abs(self.x) + abs(self.y)

    class Own:
        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.value % 2 == other.value % 2

        def __repr__(self) -> str:
            return "own"

    class Empty:
        pass

    class One:
        value: Any

    whole = {"frozen": True, "slots": True}
    for kind in (Point, Own, Empty, One):
        kind.__qualname__ = kind.__name__
    return {
        "Point": make(**whole)(Point),
        "Own": make(**whole)(Own),
        "Empty": make(**whole)(Empty),
        "One": make(**whole, kw_only=True)(One),
        "Identity": make(**whole, eq=False)(type("Identity", (), {"__annotations__": {"value": int}})),
    }


MADE = {name: _kinds(make) for name, make in KINDS.items()}
PROGRAMS = {
    "positional": lambda k: k["Point"](1.0, 3.0),
    "by keyword": lambda k: k["Point"](y=3.0, x=1.0),
    "a default": lambda k: k["Point"](1.0).y,
    "a factory": lambda k: k["Point"](1.0).made,
    "after init": lambda k: k["Point"](1.0).made is k["Point"](1.0).made,
    "representation": lambda k: repr(k["Point"](1.0, names=("a",))),
    "own representation": lambda k: repr(k["Own"](1)),
    "equal": lambda k: k["Point"](1.0, note="a") == k["Point"](1.0, note="b"),
    "unequal": lambda k: k["Point"](1.0) == k["Point"](1.5),
    "another kind": lambda k: k["Point"](1.0) == 1.0,
    "own equality": lambda k: k["Own"](1) == k["Own"](3),
    "hashes": lambda k: hash(k["Point"](1.0, note="a")) == hash(k["Point"](1.0, note="b")),
    "a hash": lambda k: hash(k["One"](value=3)),
    "no hash": lambda k: hash(k["One"](value=[])),
    "identity": lambda k: k["Identity"](1) == k["Identity"](1),
    "set": lambda k: setattr(k["Point"](1.0), "x", 2.0),
    "delete": lambda k: delattr(k["Point"](1.0), "x"),
    "no argument": lambda k: k["Point"](),
    "too many": lambda k: k["One"](1),
    "unknown": lambda k: k["Point"](1.0, w=2),
    "twice": lambda k: k["Point"](1.0, x=2.0),
    "not of init": lambda k: k["Point"](1.0, made=[]),
    "replaced": lambda k: dataclasses.replace(k["Point"](1.0), y=5.0),
    "as a dict": lambda k: dataclasses.asdict(k["Point"](1.0)),
    "fields": lambda k: [each.name for each in dataclasses.fields(k["Point"])],
    "copied": lambda k: copy.copy(k["Point"](1.0, 3.0)),
    "copied whole": lambda k: copy.deepcopy(k["Point"](1.0, 3.0, ("a",))),
    "a method": lambda k: k["Point"](1.0, -3.0).length(),
    "slots": lambda k: hasattr(k["Point"](1.0), "__dict__"),
    "matched": lambda k: k["Point"].__match_args__,
    "set in a subclass": lambda k: setattr(type("Sub", (k["Point"],), {})(1.0), "x", 1),
    "empty": lambda k: (repr(k["Empty"]()), k["Empty"]() == k["Empty"]()),
    "frozen": lambda k: k["Point"].__dataclass_params__.frozen,
}


def _comes_to(program: Any, kinds: dict[str, type]) -> str:
    """What a program gives, as text; the name of what it raises."""
    try:
        return repr(program(kinds))
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_record_does_what_a_frozen_dataclass_does(program: str) -> None:
    ours, standard = (_comes_to(PROGRAMS[program], MADE[name]) for name in KINDS)
    assert ours == standard


@frozen.dataclass(frozen=True, slots=True)
class Kept:
    """A record that can be found by its name."""

    value: int
    others: tuple[int, ...] = ()


@frozen.dataclass(frozen=True, slots=True)
class Longer(Kept):
    """A record that inherits fields."""

    last: str = ""


@frozen.quickly_pickled
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A record of the standard library."""

    value: int
    others: tuple[int, ...] = ()


def test_records_travel_in_pickles() -> None:
    for record in (Kept(1, (2, 3)), Longer(1, last="z"), Generated(value=1, others=(2,)), Generated(value=4)):
        assert pickle.loads(pickle.dumps(record)) == record
        assert copy.copy(record) is not record


def test_a_record_that_inherits_fields_has_them_all() -> None:
    longer = Longer(1, last="z")
    assert repr(longer) == "Longer(value=1, others=(), last='z')"
    with pytest.raises(dataclasses.FrozenInstanceError):
        longer.value = 2  # type: ignore[misc]


def test_names_that_are_no_fields() -> None:
    """The standard library's class of this kind raises a TypeError about `super` in both cases, on Python 3.11."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Kept(1).more = 2  # type: ignore[attr-defined]
    inheriting = type("Inheriting", (Kept,), {})(1)
    inheriting.more = 2
    assert inheriting.more == 2


def test_no_method_of_a_record_is_compiled() -> None:
    assert Kept.__init__.__code__.co_filename == frozen.__file__


def test_the_pickling_of_a_generated_record_is_ours() -> None:
    for name in ("__getstate__", "__setstate__"):
        assert getattr(Generated, name).__code__.co_filename == frozen.__file__
    assert Generated.__init__.__code__.co_filename != frozen.__file__
