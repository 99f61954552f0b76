"""The parameters of the commands, as Typer reads them."""

from typing import Annotated

import typer

from gradcli.cli.arguments.completion import complete_checks, complete_formats, complete_tags
from gradcli.cli.arguments.target_names import complete_targets

Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET",
        help="module:Name, path.py:Name, a module or file (every Function in it), a spec, or a folder of specs. "
        "Without one: specs of [tool.gradcli] in pyproject.toml, else ./specs.",
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
        help="A random input, as in x=20x30 or idx=5,domain=indices,high=4.",
        show_default=False,
    ),
]
Arguments = Annotated[
    list[str] | None,
    typer.Option("-a", "--arg", metavar="NAME=VALUE", help="A fixed argument, as in dim=-1.", show_default=False),
]
Order = Annotated[
    int | None,
    typer.Option(
        "--order",
        min=1,
        help="Highest derivative order to check; 2 unless given. If given, a backward that raises when it is "
        "differentiated fails; otherwise that is a note.",
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
    typer.Option("--samples", min=1, help="Random inputs per case; 3 unless given.", show_default=False),
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
        help="Where Triton kernels run: interpret (on the CPU, without a GPU), gpu, or auto: interpret where no GPU is "
        "found; auto unless given.",
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
        help="Fail a case whose error bound is too loose to detect a relative error of R.",
        show_default=False,
    ),
]
Grad = Annotated[
    str | None,
    typer.Option(
        "--grad",
        metavar="MODULE:ATTR",
        help="The hand-written gradient of a callable: a function that takes grad_output (PyTorch, JAX, the engine), "
        "or the callable's own arguments (NumPy).",
        show_default=False,
    ),
]
Saved = Annotated[
    str | None,
    typer.Option(
        "--saved",
        metavar="NAMES",
        help="What --grad takes besides grad_output, as mean,rstd: arguments, or extra values the callable returns.",
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
        help="Also write a report, its format by the suffix: .json .ndjson .xml .sarif .md .html; repeatable.",
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
        help="Run the cases whose ids fit, as in 'Linear and not bias'.",
        show_default=False,
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="NAME",
        help="Run the cases that have this tag in their spec; repeatable.",
        autocompletion=complete_tags,
        show_default=False,
    ),
]
LastFailed = Annotated[
    bool, typer.Option("--last-failed", help="Run the cases that did not pass last time; all if none.")
]
FailedFirst = Annotated[bool, typer.Option("--failed-first", help="Run the cases that did not pass last time first.")]
CacheResults = Annotated[
    bool, typer.Option("--cache", help="Skip cases that passed before and have not changed, and list them.")
]
ShardText = Annotated[
    str | None, typer.Option("--shard", metavar="I/N", help="Run share I of N of the cases.", show_default=False)
]
Executor = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Where cases run: processes, dask, dask:ADDRESS, or module:factory.",
        show_default=False,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="S",
        help="Time limit of a case in seconds.",
        show_default=False,
    ),
]
InProcess = Annotated[
    bool, typer.Option("--in-process", help="Import and run the target in this process, for a debugger.")
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="S",
        help="Seconds after which a case skips optional work: other inputs and sizes, the diagnosis, the search for a "
        "smaller input. Default: a minute of such work.",
        show_default=False,
    ),
]
FailFast = Annotated[bool, typer.Option("-x", "--fail-fast", help="Stop at the first failure.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only the summary.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "-v",
        "--verbose",
        help="Show more: entries of gradients, hooks, every check that ran, error bounds, evaluations.",
    ),
]
AllowInconclusive = Annotated[
    bool, typer.Option("--allow-inconclusive", help="INCONCLUSIVE does not change the exit code.")
]
