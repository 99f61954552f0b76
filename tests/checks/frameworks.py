"""What tests of checks share: arguments by hand, and the battery on a Function at them."""

import numpy as np

from gradcli.cases import Argument
from gradcli.checks.battery import run_battery
from gradcli.diagnosis.naming import name_findings
from gradcli.results import judge
from gradcli.settings import Settings


def tensor(name, value, *, grad=True):
    return Argument(name=name, value=np.asarray(value), is_tensor=True, requires_grad=grad)


def constant(name, value):
    return Argument(name=name, value=value, is_tensor=False)


def examined(backend, function, *arguments, sweep=False, **settings):
    """The verdict, the evidence and the findings of the battery on a Function at these arguments."""
    subject, evidence = _run(backend, function, arguments, sweep, settings)
    return judge(evidence), evidence, name_findings(evidence, subject)


def decided(backend, function, *arguments, sweep=False, **settings):
    """The verdict and the evidence alone: naming what is wrong may take longer than finding that it is."""
    _, evidence = _run(backend, function, arguments, sweep, settings)
    return judge(evidence), evidence


def _run(backend, function, arguments, sweep, settings):
    subject = backend.bind(function, list(arguments))
    return subject, run_battery(subject, Settings(**settings), seed=0, sweep=sweep)
