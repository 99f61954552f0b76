"""Anomaly mode: every new node remembers the line that made it, and NaN in a backward pass raises."""

from __future__ import annotations

from types import TracebackType

from gradcli.engine.grad_mode import STATE


class set_detect_anomaly:  # noqa: N801  (the name programs use)
    """Set anomaly mode at once, and put it back when used as a context that ends.

    Args:
        mode: on or off.
        check_nan: raise when a backward computes NaN.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = STATE.anomaly, STATE.check_nan
        STATE.anomaly, STATE.check_nan = bool(mode), bool(check_nan)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        STATE.anomaly, STATE.check_nan = self._before


class detect_anomaly:  # noqa: N801  (the name programs use)
    """Anomaly mode as a context.

    Args:
        check_nan: raise when a backward computes NaN.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = bool(check_nan)
        self._before = STATE.anomaly, STATE.check_nan

    def __enter__(self) -> None:
        self._before = STATE.anomaly, STATE.check_nan
        STATE.anomaly, STATE.check_nan = True, self._check_nan

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        STATE.anomaly, STATE.check_nan = self._before
