"""Functions made of a forward and a wrong backward, and what a diagnosis finds in them."""

import numpy as np

from gradcli.backends.registry import backend_named
from gradcli.checks.battery import run_battery
from gradcli.diagnosis.naming import name_findings
from gradcli.settings import Settings

ENGINE = backend_named("engine")
ns = ENGINE.framework.namespace


def function(forward, backward):
    class Made(ns.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            output = forward(*inputs)
            outputs = output if isinstance(output, tuple) else (output,)
            ctx.save_for_backward(*inputs, *outputs)
            return output

        @staticmethod
        def backward(ctx, *g):
            return backward(*g, *ctx.saved_tensors)

    Made.forward.__name__ = "forward"
    return Made


def subject_of(made, *shapes, seed=0):
    """A Function bound to normal inputs; an array is taken as it is."""
    generator = np.random.default_rng(seed)
    values = [s if isinstance(s, np.ndarray) else generator.normal(size=s) for s in shapes]
    return ENGINE.bind(made, ENGINE.adopt(values))


def found(made, *shapes, seed=0):
    """The findings at normal inputs; an array is taken as it is, integers and booleans untracked."""
    subject = subject_of(made, *shapes, seed=seed)
    evidence = run_battery(subject, Settings(order=1), seed=seed)
    return name_findings(evidence, subject, seed=seed)


def assert_told(kind, says, made, shapes, seed):
    """One finding, of this kind, whose message says this."""
    (finding,) = found(made, *shapes, seed=seed)
    assert finding.kind is kind, finding.message
    assert says in finding.message
