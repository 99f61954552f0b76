"""Where Triton kernels run: on a GPU, or in Triton's interpreter on the CPU, which needs none.

Triton reads its environment when it decorates a kernel, which is when the user's module is imported: the choice has to
be made before. Triton itself is not imported for it.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.machinery import PathFinder

VARIABLE = "TRITON_INTERPRET"
_VALUES: Mapping[str, str | None] = {"interpret": "1", "gpu": "0", "auto": None}
MODES = tuple(_VALUES)
_DRIVERS = ("/dev/nvidiactl", "/dev/nvgpu", "/dev/nvhost-gpu", "/dev/kfd", "/dev/dxg")
"""Files of the drivers of NVIDIA (of servers and of Jetson boards), of AMD, and of either under WSL."""
_HIDING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Variables that hide every GPU where they are empty or -1."""


def kernel_environment(mode: str, path: list[str] | None = None) -> dict[str, str]:
    """What to set in the environment of a process before anything of the user's is imported in it.

    `auto` asks for the interpreter where Triton is installed on `path` and no GPU is found, unless the environment has
    the variable already.
    """
    value = _VALUES[mode]
    if value is not None:
        return {VARIABLE: value}
    if VARIABLE in os.environ or has_gpu() or not _has_triton(path):
        return {}
    return {VARIABLE: "1"}


def has_gpu() -> bool:
    """Whether the driver of a GPU that Triton compiles for is there, and no variable hides its devices."""
    if any(os.environ.get(name) in ("", "-1") for name in _HIDING):
        return False
    return any(map(os.path.exists, _DRIVERS)) or shutil.which("nvidia-smi") is not None


def _has_triton(path: list[str] | None) -> bool:
    return "triton" in sys.modules or PathFinder.find_spec("triton", path) is not None
