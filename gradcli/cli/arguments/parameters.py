"""The parameters of the commands, as Typer reads them."""

from typing import Annotated

import typer

from gradcli.cli.arguments.completion import complete_checks, complete_formats, complete_tags
from gradcli.cli.arguments.target_names import complete_targets

Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET",
        help="module:Name, path.py:Name, a module or file (every Function in it), a spec (a YAML file with a target "
        "and its inputs), or a folder of specs. Without one: specs of [tool.gradcli] in pyproject.toml, else ./specs.",
        autocompletion=complete_targets,
        show_default=False,
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "-i",
        "--input",
        metavar="NAME=SHAPE[,KEY=VALUE]...",
        help="A random input by its name and shape, as in x=20x30 or idx=5,domain=indices,high=4.",
        show_default=False,
    ),
]
Arguments = Annotated[
    list[str] | None,
    typer.Option(
        "-a", "--arg", metavar="NAME=VALUE", help=("An argument with a fixed value, as in dim=-1."), show_default=False
    ),
]
Order = Annotated[
    int | None,
    typer.Option(
        "--order",
        min=1,
        help="Highest order of derivative to check; 2 unless given. If given, a backward that raises when it is "
        "differentiated fails the case; else, it is only noted.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the run, from which every case derives its own.")]
RunSeed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        help="Seed of the run, from which every case derives its own; 0 unless given.",
        show_default=False,
    ),
]
Samples = Annotated[
    int | None,
    typer.Option("--samples", min=1, help="Sets of random inputs per case; 3 unless given.", show_default=False),
]
Dtype = Annotated[str, typer.Option("--dtype", help="Dtype of floating inputs.")]
Device = Annotated[
    str | None,
    typer.Option(
        "--device", metavar="NAME", help="The device of the tensors: cpu, cuda, cuda:1 or mps.", show_default=False
    ),
]
Triton = Annotated[
    str | None,
    typer.Option(
        "--triton",
        metavar="MODE",
        help="Where Triton kernels run: interpret (on the CPU, in Triton's interpreter), gpu, or auto (interpret "
        "where no GPU is found); auto unless given.",
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="CHECK",
        help="Run only this check; repeatable.",
        autocompletion=complete_checks,
        show_default=False,
    ),
]
Skip = Annotated[
    list[str] | None,
    typer.Option(
        "--skip",
        metavar="CHECK",
        help="Leave this check out; repeatable.",
        autocompletion=complete_checks,
        show_default=False,
    ),
]
RequireResolution = Annotated[
    float | None,
    typer.Option(
        "--require-resolution",
        metavar="R",
        help="Fail a case whose error bounds are too wide to detect a relative error of R in the gradient.",
        show_default=False,
    ),
]
Grad = Annotated[
    str | None,
    typer.Option(
        "--grad",
        metavar="MODULE:ATTR",
        help=(
            "The hand-written gradient of a callable, as MODULE:ATTR, or only ATTR if it is in the callable's module. "
            "For PyTorch, JAX and gradcli.engine it takes grad_output, then the arguments of the callable or the "
            "values of --saved. For NumPy it takes the arguments of the callable and returns a gradient or Jacobian; "
            "if it also takes the cotangent, as its last argument, it is a vjp."
        ),
        show_default=False,
    ),
]
Saved = Annotated[
    str | None,
    typer.Option(
        "--saved",
        metavar="NAMES",
        help=(
            "The parameters of the --grad function besides grad_output, as in mean,rstd: arguments of the "
            "callable, or extra values that it returns after its outputs."
        ),
        show_default=False,
    ),
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="table, plain, json, ndjson, junit, sarif, github or markdown; table on a terminal, plain elsewhere.",
        autocompletion=complete_formats,
        show_default=False,
    ),
]
Reports = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        metavar="PATH",
        help=(
            "Also write a report to PATH, in the format of its suffix: .json .ndjson .xml .sarif .md .html; repeatable."
        ),
        show_default=False,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("-j", "--jobs", min=1, metavar="N", help="Worker processes; 1 unless given.", show_default=False),
]
Keyword = Annotated[
    str | None,
    typer.Option(
        "-k",
        metavar="EXPR",
        help="Run only the cases whose ids match, as in 'Linear and not bias'.",
        show_default=False,
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="NAME",
        help="Run only the cases that have this tag in their spec; repeatable.",
        autocompletion=complete_tags,
        show_default=False,
    ),
]
LastFailed = Annotated[
    bool,
    typer.Option(
        "--last-failed", help=("Run only the cases that did not pass last time; all cases if there are none.")
    ),
]
FailedFirst = Annotated[
    bool, typer.Option("--failed-first", help=("Run the cases that did not pass last time before the others."))
]
CacheResults = Annotated[
    bool,
    typer.Option(
        "--cache", help=("Skip the cases that passed before and have not changed since; the report lists them.")
    ),
]
ShardText = Annotated[
    str | None,
    typer.Option("--shard", metavar="I/N", help=("Split the cases into N shards and run shard I."), show_default=False),
]
Executor = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Where cases run: processes, dask, dask:ADDRESS, or module:factory (a function that returns an executor).",
        show_default=False,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="S",
        help="Time limit of a case in seconds; a case over it is an ERROR.",
        show_default=False,
    ),
]
InProcess = Annotated[
    bool,
    typer.Option("--in-process", help=("Run the target in this process and not in a worker process, for a debugger.")),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="S",
        help="Seconds after which a case leaves out optional work: further samples (if forward is slow), other "
        "inputs and sizes, the diagnosis, the search for a smaller input. By default the optional work alone may "
        "take 60 s.",
        show_default=False,
    ),
]
FailFast = Annotated[bool, typer.Option("-x", "--fail-fast", help="Stop at the first failure.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only the summary.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "-v",
        "--verbose",
        help="Show more: entries of gradients, hooks, every check that ran, error bounds, evaluations.",
    ),
]
AllowInconclusive = Annotated[
    bool, typer.Option("--allow-inconclusive", help="An INCONCLUSIVE case does not change the exit code.")
]
