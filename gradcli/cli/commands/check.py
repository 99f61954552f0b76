"""`gradcli check`: the options, read into a request."""

from gradcli.cli.arguments import parameters as p
from gradcli.cli.arguments.request import request_from


def check_command(
    targets: p.Targets = None,
    inputs: p.Inputs = None,
    arguments: p.Arguments = None,
    order: p.Order = None,
    seed: p.RunSeed = None,
    samples: p.Samples = None,
    dtype: p.Dtype = "float64",
    device: p.Device = None,
    triton: p.Triton = None,
    only: p.Only = None,
    skip: p.Skip = None,
    require_resolution: p.RequireResolution = None,
    grad: p.Grad = None,
    saved: p.Saved = None,
    form: p.FormatName = None,
    report: p.Reports = None,
    jobs: p.Jobs = None,
    shard: p.ShardText = None,
    executor: p.Executor = None,
    timeout: p.Timeout = None,
    in_process: p.InProcess = False,
    budget: p.Budget = None,
    keyword: p.Keyword = None,
    tag: p.Tags = None,
    last_failed: p.LastFailed = False,
    failed_first: p.FailedFirst = False,
    cache: p.CacheResults = False,
    fail_fast: p.FailFast = False,
    quiet: p.Quiet = False,
    verbose: p.Verbose = False,
    allow_inconclusive: p.AllowInconclusive = False,
) -> int:
    """Check hand-written gradients with finite differences and their error bounds, and name the mistake."""
    request = request_from(locals())
    from gradcli.cli.pipeline import check

    return check(request)
