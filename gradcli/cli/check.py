"""`gradcli check`: the options, read into a request."""

from gradcli.cli import parameters as p
from gradcli.cli.request import CheckRequest
from gradcli.settings import DEFAULT_ORDER, Settings


def check_command(
    targets: p.Targets = None,
    inputs: p.Inputs = None,
    arguments: p.Arguments = None,
    order: p.Order = None,
    seed: p.Seed = 0,
    samples: p.Samples = 3,
    dtype: p.Dtype = "float64",
    device: p.Device = None,
    only: p.Only = None,
    skip: p.Skip = None,
    require_resolution: p.RequireResolution = None,
    grad: p.Grad = None,
    form: p.FormatName = None,
    report: p.Reports = None,
    jobs: p.Jobs = 1,
    shard: p.ShardText = None,
    executor: p.Executor = None,
    timeout: p.Timeout = None,
    in_process: p.InProcess = False,
    budget: p.Budget = None,
    fail_fast: p.FailFast = False,
    quiet: p.Quiet = False,
    verbose: p.Verbose = False,
    allow_inconclusive: p.AllowInconclusive = False,
) -> int:
    """Check gradients: a verdict from an error bound, and a diagnosis that names the bug."""
    settings = Settings(
        order=DEFAULT_ORDER if order is None else order,
        order_asked=order is not None,
        seed=seed,
        samples=samples,
        dtype=dtype,
        device=device,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        require_resolution=require_resolution,
        timeout=timeout,
        budget=budget,
        jobs=jobs,
        fail_fast=fail_fast,
        allow_inconclusive=allow_inconclusive,
    )
    request = CheckRequest(
        settings=settings,
        targets=tuple(targets or ()),
        inputs=tuple(inputs or ()),
        arguments=tuple(arguments or ()),
        grad=grad,
        form=form,
        reports=tuple(report or ()),
        shard=shard,
        executor=executor,
        in_process=in_process,
        quiet=quiet,
        verbose=verbose,
    )
    from gradcli.cli.pipeline import check

    return check(request)
