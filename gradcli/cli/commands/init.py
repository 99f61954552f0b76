"""`gradcli init`: a spec for a target, with the inputs that inference found."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradcli.cli.arguments.parameters import InProcess
from gradcli.cli.arguments.target_names import complete_functions
from gradcli.cli.commands.schema import schema_text
from gradcli.cli.output.streams import report_stream
from gradcli.errors import UsageError

SCHEMA_FILE = ".gradcli-schema.json"
"""Beside the specs: editors complete and check them by it, through the comment on top of each."""

if TYPE_CHECKING:
    from gradcli.cases import InputSpec
    from gradcli.runner.arguments.overview import Survey


def init_command(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="module:Name or path.py:Name.", autocompletion=complete_functions)
    ],
    in_process: InProcess = False,
) -> int:
    """Write a spec for TARGET into ./specs, with inferred inputs; an existing file is never overwritten."""
    from gradcli.cases import CheckSpec
    from gradcli.cli.pools import site
    from gradcli.runner.jobs import SurveyJob
    from gradcli.runner.planning.plan import plan
    from gradcli.settings import Settings

    stream = report_stream()
    path = Path("specs") / f"{_file_name(target)}.yaml"
    if path.exists():
        raise UsageError(
            f"{path} already exists and was not changed. Edit it, or remove it and run this command again."
        )
    (case,) = plan([CheckSpec(target=target)], Settings())
    with site(in_process=in_process) as here:
        seen: Survey = here.do(SurveyJob(target=target, case=case))
    if seen.problem is not None:
        stream.write(f"note: {seen.problem}; fill in the inputs by hand\n")
    cases = [seen.inputs, *seen.alternatives] if seen.inputs else []
    text = spec_text(target, cases, seen.names)
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(f"# yaml-language-server: $schema={SCHEMA_FILE}\n{text}")
        (path.parent / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    stream.write(f"wrote {path}; check it with: gradcli check {path}\n")
    stream.flush()
    return 0


def spec_text(target: str, cases: Sequence[Sequence["InputSpec"]], parameters: Sequence[str]) -> str:
    """The YAML of a spec with one case for each set of inputs; a template in a comment where there are none."""
    lines = [f"target: {_scalar(target)}"]
    if not cases:
        lines += ["# gradcli found no inputs that forward accepts. Fill in the shapes, and remove the #:", "# cases:"]
        lines += ["#   - inputs:", *(f"#       {name}: {{shape: [3, 4]}}" for name in parameters)]
    else:
        lines.append("cases:")
        for number, inputs in enumerate(cases):
            lines.append(f"  - name: {'inferred' if number == 0 else f'inferred {number + 1}'}")
            lines.append("    inputs:")
            lines += [f"      {_scalar(spec.name)}: {_input(spec)}" for spec in inputs]
    return "\n".join([*lines, "expect: passed", ""])


def _file_name(target: str) -> str:
    name = re.split(r":(?![\\/])", target)[-1]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace(".py", ""))
    return re.sub(r"\W+", "_", words).strip("_").lower() or "spec"


def _input(spec: "InputSpec") -> str:
    if spec.kind == "value":
        return _flow(spec.value)
    keys: Iterator[tuple[str, Any]] = (
        (key, value)
        for key, value in (
            ("shape", list(spec.shape or ())),
            ("dtype", spec.dtype),
            ("domain", spec.domain if spec.domain != "normal" else None),
            ("layout", spec.layout),
            *spec.parameters,
            ("grad", spec.requires_grad),
        )
        if value is not None
    )
    return f"{{{', '.join(f'{key}: {_flow(value)}' for key, value in keys)}}}"


def _flow(value: Any) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, list):
        return f"[{', '.join(_flow(part) for part in value)}]"
    if isinstance(value, str):
        return _scalar(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    return f"{{python: {json.dumps(repr(value))}}}"


def _scalar(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z_][\w.:/-]*", text) and not text.endswith(":") else json.dumps(text)
