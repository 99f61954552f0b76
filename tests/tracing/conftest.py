import importlib
import os
from types import ModuleType

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(params=["engine", "torch"])
def framework(request: pytest.FixtureRequest) -> ModuleType:
    """The namespace of each framework of PyTorch's shape."""
    if request.param == "torch":
        return pytest.importorskip("torch", reason="the trace of PyTorch's graphs needs PyTorch")
    return importlib.import_module("gradcli.engine")
