"""The engine and PyTorch, for tests of checks that must say the same on both."""

import numpy as np
import pytest

from gradcli.backends.registry import backend_named
from gradcli.cases import Argument
from gradcli.checks.battery import run_battery
from gradcli.diagnosis.naming import name_findings
from gradcli.results import judge
from gradcli.settings import Settings


@pytest.fixture(params=["engine", "torch"])
def backend(request):
    if request.param == "torch":
        pytest.importorskip("torch", reason="the torch backend needs PyTorch")
    return backend_named(request.param)


@pytest.fixture
def ns(backend):
    return backend.framework.namespace


def tensor(name, value, *, grad=True):
    return Argument(name=name, value=np.asarray(value), is_tensor=True, requires_grad=grad)


def constant(name, value):
    return Argument(name=name, value=value, is_tensor=False)


def examined(backend, function, *arguments, sweep=False, **settings):
    """The verdict, the evidence and the findings of the battery on a Function at these arguments."""
    subject = backend.bind(function, list(arguments))
    evidence = run_battery(subject, Settings(**settings), seed=0, sweep=sweep)
    return judge(evidence), evidence, name_findings(evidence, subject)
