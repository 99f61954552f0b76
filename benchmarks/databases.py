"""gradcli beside PyTorch's slow gradcheck on PyTorch's own modules, custom Functions and custom operators.

Run: python benchmarks/databases.py [modules|functions|operators]

They come from `torch.testing._internal`, with the inputs that PyTorch tests them at, in float64, at order 1. Cases of
which the two do not say the same are printed; then the number of cases by what was said.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from torch.autograd import gradcheck
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.custom_op_db import custom_op_db

import gradcli

SAMPLES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A target for gradcli with its inputs, and the same as gradcheck wants it."""

    name: str
    target: Any
    inputs: tuple[Any, ...]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def modules() -> Iterator[Case]:
    """Modules with their parameters, in training and in evaluation; none that is lazy or takes keywords."""
    for info in module_db:
        for training in (True, False):
            torch.manual_seed(0)
            drawn = info.module_inputs_func(
                info, device="cpu", dtype=torch.float64, requires_grad=True, training=training
            )
            for number, given in enumerate(islice(drawn, SAMPLES)):
                call, made = given.forward_input, given.constructor_input
                if call is None or call.kwargs or "Lazy" in info.name:
                    continue
                module = info.module_cls(*made.args, **made.kwargs).to(torch.float64).train(training)
                manner = "training" if training else "evaluation"
                yield _module_case(f"{info.name} {number}, {manner}", module, tuple(call.args))


def _module_case(name: str, module: torch.nn.Module, inputs: tuple[Any, ...]) -> Case:
    own = {key: value for key, value in module.named_parameters() if value.requires_grad}

    def function(*arguments: Any) -> Any:
        parameters = dict(zip(own, arguments[: len(own)], strict=True))
        return torch.func.functional_call(module, parameters, arguments[len(own) :])

    leaves = [value.detach().clone().requires_grad_() for value in own.values()]
    return Case(name=name, target=module, inputs=inputs, function=function, arguments=(*leaves, *inputs))


def sampled(database: list[Any]) -> Iterator[Case]:
    """Callables of a database of operators."""
    for info in database:
        drawn = info.sample_inputs("cpu", torch.float64, requires_grad=True)
        for number, sample in enumerate(islice(drawn, SAMPLES)):
            inputs = (sample.input, *sample.args)
            function = _with(info.op, sample.kwargs)
            name = f"{info.name} {number}"
            yield Case(name=name, target=function, inputs=inputs, function=function, arguments=inputs)


def _with(operator: Callable[..., Any], keywords: dict[str, Any]) -> Callable[..., Any]:
    def function(*arguments: Any) -> Any:
        return operator(*arguments, **keywords)

    return function


def verdict_of(checker: Callable[..., Any], case: Case) -> str:
    """What a gradcheck says, or the class of what it raises instead of a verdict."""
    try:
        checker(case.function, case.arguments)
    except Exception as error:
        # Whatever it raises is its verdict.
        return "failed" if type(error).__name__ == "GradcheckError" else type(error).__name__
    return "passed"


def compare(case: Case) -> tuple[str, str, str]:
    """What slow mode, gradcli and `gradcli.gradcheck` say; printed where they differ."""
    slow = verdict_of(gradcheck, case)
    result = gradcli.check(case.target, case.inputs, order=1, shrink=False).cases[0]
    said = (slow, result.verdict.value, verdict_of(gradcli.gradcheck, case))
    if len(set(said)) > 1:
        reasons = [finding.message for finding in result.findings] or [e.note for e in result.evidence if e.reason]
        print(f"{case.name}: {' / '.join(said)}: {'; '.join(str(reason) for reason in reasons[:2])}", flush=True)
    return said


def main() -> None:
    """Compare those asked for, all by default."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    tables = {
        "modules": modules,
        "functions": lambda: sampled(autograd_function_db),
        "operators": lambda: sampled(custom_op_db),
    }
    for name in sys.argv[1:] or tables:
        counted = Counter(compare(case) for case in tables[name]())
        print(f"{name}: slow mode / gradcli / gradcli.gradcheck")
        for said, count in counted.most_common():
            print(f"{count:6d}  {' / '.join(said)}")


if __name__ == "__main__":
    main()
