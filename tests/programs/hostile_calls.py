"""Functions that are right at the inputs asked for and never return, or crash, at others; each with a wrong twin."""

import ctypes
import os
import queue
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcli.engine as engine


def for_ever() -> None:
    while True:
        pass


def deaf() -> None:
    while True:
        try:
            for_ever()
        except BaseException:
            continue


def iterates() -> None:
    value = 1.0
    while abs(value) > 1e-9:
        value = -value


INTERRUPTIBLE: dict[str, Callable[[], object]] = {
    "loop": for_ever,
    "deaf": deaf,
    "iteration": iterates,
    "sleep": lambda: time.sleep(1000),
    "regex": lambda: re.match(r"(a+)+$", "a" * 60 + "b"),
    "event": lambda: threading.Event().wait(1000),
    "queue": lambda: queue.Queue[int]().get(),
    "pipe": lambda: os.read(os.pipe()[0], 1),
    "process": lambda: subprocess.run(["sleep", "1000"], check=True),
}
"""What a signal interrupts."""
FATAL: dict[str, Callable[[], object]] = {
    "c_loop": lambda: sum(range(10**13)),
    "null": lambda: ctypes.string_at(0),
    "past_the_end": lambda: ctypes.string_at(1 << 40, 8),
    "abort": os.abort,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exits_hard": lambda: ctypes.CDLL(None)._exit(0),
}
"""What only the end of the process ends."""


def negative(x: Any) -> bool:
    return bool((x.detach().numpy() < 0).any())


def large(x: Any) -> bool:
    return bool((np.abs(x.detach().numpy()) > 4).any())


def resized(x: Any) -> bool:
    return bool(x.shape != (3,))


WHERE = {"negative": negative, "large": large, "resized": resized}


def made(name: str, act: Callable[[], object], where: Callable[[Any], bool], factor: float, *, later: bool) -> type:
    """x^3 with `factor` x^2 for its derivative; acts in backward if `later`, else in forward."""

    class Cube(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if not later and where(x):
                act()
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            if later and where(x):
                act()
            return factor * x * x * g

    Cube.__name__ = Cube.__qualname__ = name
    return Cube


for _name, _act in {**INTERRUPTIBLE, **FATAL}.items():
    for _where, _holds in WHERE.items():
        for _twin, _factor in (("right", 3.0), ("wrong", 2.0)):
            _full = f"{_name}_{_where}_{_twin}"
            globals()[_full] = made(_full, _act, _holds, _factor, later=False)
for _twin, _factor in (("right", 3.0), ("wrong", 2.0)):
    globals()[f"backward_{_twin}"] = made(f"backward_{_twin}", for_ever, negative, _factor, later=True)
