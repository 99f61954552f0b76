"""All members."""

from __future__ import annotations

import benchmarks.kinds.axes
import benchmarks.kinds.bindings
import benchmarks.kinds.buffers
import benchmarks.kinds.choosing
import benchmarks.kinds.gradchecks
import benchmarks.kinds.jaxes
import benchmarks.kinds.memory
import benchmarks.kinds.numbers
import benchmarks.kinds.precision
import benchmarks.kinds.raising
import benchmarks.kinds.screens
import benchmarks.kinds.stops
import benchmarks.kinds.triangles  # noqa: F401
from benchmarks.kinds.member import MEMBERS

__all__ = ["MEMBERS"]
