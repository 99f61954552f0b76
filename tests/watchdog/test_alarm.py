"""The timer that interrupts the user's code: it rings when it is due, in user's code only, and is put back."""

import concurrent.futures
import contextlib
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import gradcli
from gradcli.watchdog.alarm import Alarm, OutOfTimeError, cleaning


def spin(seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def called_by_gradcli(function: Callable[[], object], context: AbstractContextManager[Any]) -> None:
    source = "def call(function, context):\n    with context:\n        function()\n"
    ours: dict[str, Any] = {}
    exec(compile(source, str(Path(gradcli.__file__).with_name("somewhere.py")), "exec"), ours)
    ours["call"](function, context)


def test_python_loops_and_sleeps_are_interrupted_and_the_timer_is_put_back():
    before = signal.getsignal(signal.SIGALRM)
    alarm = Alarm()
    for endless in (spin, lambda: time.sleep(60.0)):
        with alarm.installed():
            alarm.set(0.02)
            with pytest.raises(OutOfTimeError):
                endless()
            assert alarm.clear()
            assert not alarm.clear()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_code_that_catches_everything_is_interrupted_all_the_same():
    def deaf() -> None:
        while True:
            try:
                spin()
            except BaseException:
                continue

    alarm, tracer = Alarm(), sys.gettrace()
    with alarm.installed():
        alarm.set(0.02)
        with pytest.raises(OutOfTimeError):
            deaf()
        assert alarm.clear()
    assert sys.gettrace() is tracer


def test_an_interrupt_lost_in_a_finaliser_is_not_printed_and_the_next_one_arrives(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    class Slow:
        def __del__(self) -> None:
            spin(0.06)

    def drop_for_ever() -> None:
        while True:
            Slow()

    class Wrong:
        def __del__(self) -> None:
            raise ValueError("not ours")

    alarm = Alarm()
    with alarm.installed():
        Wrong()
        assert [unraisable.exc_type for unraisable in reported] == [ValueError]
        alarm.set(0.02)
        with pytest.raises(OutOfTimeError):
            drop_for_ever()
        assert alarm.clear()
    assert [unraisable.exc_type for unraisable in reported] == [ValueError]
    assert sys.unraisablehook == reported.append


def test_no_timer_is_left_behind():
    alarm = Alarm()
    with alarm.installed():
        alarm.set(5.0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_ends_in_time_is_not_interrupted():
    alarm = Alarm()
    with alarm.installed():
        alarm.set(5.0)
        assert not alarm.clear()


def test_cleaning_up_is_not_interrupted_but_reported():
    alarm = Alarm()
    with alarm.installed():
        alarm.set(0.02)
        assert _tidied(alarm)
        assert alarm.clear()


def test_a_time_that_is_over_at_once_interrupts_the_users_code_alone():
    """The code that sets the timer is not inside the `with` statement that handles the interrupt."""

    def start_and_spin() -> None:
        alarm.set(1e-6)
        spin()

    alarm = Alarm()
    with alarm.installed():
        for _ in range(50):
            with pytest.raises(OutOfTimeError) as interrupt:
                start_and_spin()
            assert interrupt.traceback[-2].name != "set"
            assert alarm.clear()


def test_an_interrupt_on_its_way_out_is_not_overtaken_by_the_next():
    def slow_to_end() -> None:
        try:
            spin()
        finally:
            spin(0.11)  # two more are due
            ended.append(True)

    def never_to_end() -> None:
        try:
            spin()
        finally:
            spin()
            ended.append(False)

    ended: list[bool] = []
    alarm = Alarm()
    for function in (slow_to_end, never_to_end):
        with alarm.installed():
            alarm.set(0.02)
            with pytest.raises(OutOfTimeError):
                called_by_gradcli(function, nullcontext())
            assert alarm.clear()
    assert ended == [True]


def test_the_end_of_a_with_statement_of_gradcli_is_not_interrupted():
    state = []

    @contextlib.contextmanager
    def switched():
        state.append("on")
        try:
            yield
        finally:
            state.append("off")

    def ring_at_exit() -> None:
        def call(frame: FrameType, _event: str, _argument: object) -> None:
            if frame.f_code is contextlib._GeneratorContextManager.__exit__.__code__:
                sys.setprofile(None)
                alarm._ring(signal.SIGALRM, frame)

        sys.setprofile(call)

    alarm = Alarm()
    with alarm.installed():
        alarm.set(60.0)
        alarm._due = alarm._seconds = 0.0
        called_by_gradcli(ring_at_exit, switched())
        assert alarm.clear()
    assert state == ["on", "off"]


@cleaning
def _tidied(alarm: Alarm) -> bool:
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        continue
    return alarm._rings > 0


def test_another_timer_keeps_its_handler_and_its_time():
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.15)
        alarm = Alarm()
        with alarm.installed():
            alarm.set(5.0)
            spin(0.3)  # due while ours runs
            assert not alarm.clear()
            assert rung == [signal.SIGALRM]
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            alarm.set(0.02)
            with pytest.raises(OutOfTimeError):
                spin()
            assert alarm.clear()
            assert 0.0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.3
        spin(0.4)
        assert rung == [signal.SIGALRM] * 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_the_users_own_handler_set_meanwhile_is_left_alone():
    before = signal.getsignal(signal.SIGALRM)
    own = lambda *_: None  # noqa: E731 - a handler without a name
    alarm = Alarm()
    try:
        with alarm.installed():
            signal.signal(signal.SIGALRM, own)
            alarm.set(0.01)
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.getsignal(signal.SIGALRM) is own
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_signal_that_nobody_waits_for_is_an_error_and_ends_no_process():
    alarm = Alarm()
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    try:
        with alarm.installed(), pytest.raises(RuntimeError, match="SIGALRM"):
            signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_off_the_main_thread_nothing_is_set():
    def fires() -> bool:
        alarm = Alarm()
        with alarm.installed():
            alarm.set(0.01)
            time.sleep(0.05)
            return alarm.clear()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert not pool.submit(fires).result()


def test_an_import_is_not_interrupted_and_what_follows_is(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(
        "import time\nbegan = time.process_time()\nwhile time.process_time() - began < 0.4:\n    pass\nWHOLE = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    extended, found = [], []
    alarm = Alarm(extended.append)
    with alarm.installed():
        try:
            alarm.set(0.1)
            import slow_to_import

            found.append(slow_to_import.WHOLE)
            while True:
                pass
        except OutOfTimeError:
            interrupted = alarm.clear()
    assert interrupted
    assert found == [True]
    assert extended == sorted(extended)
    assert extended


def test_the_time_of_an_import_is_not_that_of_the_code_that_made_it(tmp_path, monkeypatch):
    (tmp_path / "imported_first.py").write_text(
        "import time\nbegan = time.process_time()\nwhile time.process_time() - began < 0.5:\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    alarm = Alarm()
    with alarm.installed():
        alarm.set(0.3)
        import imported_first

        began = time.process_time()
        while time.process_time() - began < 0.1:
            pass
        interrupted = alarm.clear()
    assert imported_first
    assert not interrupted


def test_an_import_after_an_interrupt_that_was_caught_is_not_interrupted_either(tmp_path, monkeypatch):
    (tmp_path / "imported_late.py").write_text(
        "import time\nbegan = time.process_time()\nwhile time.process_time() - began < 0.4:\n    pass\nWHOLE = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    alarm = Alarm()
    with alarm.installed():
        alarm.set(0.05)
        try:
            while True:
                pass
        except OutOfTimeError:
            try:
                import imported_late

                found.append(imported_late.WHOLE)
                while True:
                    pass
            except OutOfTimeError:
                interrupted = alarm.clear()
    assert interrupted
    assert found == [True]


def test_code_that_had_none_of_the_processor_is_given_more_time():
    alarm, began = Alarm(), time.monotonic()
    with alarm.installed():
        try:
            alarm.set(0.1)
            time.sleep(20)
        except OutOfTimeError:
            interrupted = alarm.clear()
    assert interrupted
    assert time.monotonic() - began >= 0.29
