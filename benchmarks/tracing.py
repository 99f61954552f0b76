"""What `gradcli trace` costs: 20,000 nodes in every format, and a node beside TorchLens and torchviz.

Run as `python benchmarks/tracing.py [formats|overhead] [--nodes 20000] [--rounds 3]`. `formats` runs the whole command
once for each framework and format. `overhead` runs the same network with each tool, every tool in a process of its own
in every round, one after the other; TorchLens and torchviz are left out where they are not installed. Times are of the
processor, user and system; what a node costs is the median over the rounds of the time beyond that of the plain forward
and backward pass, by the nodes of the backward graph. The tools do not record the same: gradcli forward, backward, the
gradients of every node and the lines; TorchLens forward with every activation; torchviz the graph alone.
"""

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
FORMATS = ("tree", "table", "json", "dot", "mermaid", "html")
FRAMEWORKS = {"engine": "from gradcli import engine as f", "torch": "import torch as f"}
TOOLS = ("plain", "gradcli", "torchlens", "torchviz")
CHAIN = """
{imported}

def loss():
    x = f.ones(4, requires_grad=True)
    y = x
    for _ in range({count}):
        y = f.sin(y)
    return y.sum()
"""


def seconds_of(command: list[str], folder: str) -> float:
    """The processor time of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def formats(nodes: int) -> None:
    """Print what the whole command costs with a chain of this many nodes, and how large its output is."""
    print(f"{nodes:,} nodes   {'format':10} {'processor':>10} {'size':>10}")
    for framework, imported in FRAMEWORKS.items():
        if importlib.util.find_spec("gradcli.engine" if framework == "engine" else framework) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "deep.py").write_text(CHAIN.format(imported=imported, count=nodes - 2), encoding="utf-8")
            for form in FORMATS:
                target = ["trace", "deep.py:loss", "--format", form, "--output", "out", "--max-nodes", str(nodes)]
                spent = seconds_of([sys.executable, "-m", "gradcli", *target], folder)
                size = Path(folder, "out").stat().st_size / 1e6
                print(f"{framework:14} {form:10} {spent:8.1f} s {size:7.2f} MB", flush=True)


def network(depth: int) -> Any:
    """Linear layers and tanh, `depth` times, and an input."""
    import torch

    torch.manual_seed(0)
    blocks = [layer for _ in range(depth) for layer in (torch.nn.Linear(8, 8), torch.nn.Tanh())]
    return torch.nn.Sequential(*blocks), torch.ones(4, 8)


def plain(net: Any, x: Any) -> None:
    """Forward and backward, watched by nobody."""
    net(x).sum().backward()


def with_gradcli(net: Any, x: Any) -> None:
    """The trace with its meaning."""
    from gradcli.runner.trace import trace_target

    trace_target(lambda: net(x).sum())


def with_torchlens(net: Any, x: Any) -> None:
    """Forward, logged, and backward."""
    import torchlens

    torchlens.trace(net, x)
    plain(net, x)


def with_torchviz(net: Any, x: Any) -> None:
    """Forward, the picture, and backward."""
    import torchviz

    loss = net(x).sum()
    torchviz.make_dot(loss, params=dict(net.named_parameters()))
    loss.backward()


def timed(tool: str, depth: int, repeats: int = 5) -> float:
    """The median processor time of one run with a tool, in this process."""
    run: Callable[[Any, Any], None] = globals()["plain" if tool == "plain" else f"with_{tool}"]
    net, x = network(depth)
    run(net, x)
    spent = []
    for _ in range(repeats):
        before = process_time()
        run(net, x)
        spent.append(process_time() - before)
    return median(spent)


def overhead(rounds: int) -> None:
    """Print what a node costs with each tool that is installed."""
    from gradcli.runner.trace import trace_target

    found = [tool for tool in TOOLS if tool == "plain" or importlib.util.find_spec(tool) is not None]
    print("left out, because not installed:", ", ".join(sorted({*TOOLS} - {*found})) or "nothing")
    for depth in (30, 300):
        net, x = network(depth)
        nodes = len(trace_target(lambda net=net, x=x: net(x).sum()).nodes)
        spent: dict[str, list[float]] = {tool: [] for tool in found}
        for _ in range(rounds):
            for tool in found:
                one = [sys.executable, __file__, "one", "--tool", tool, "--depth", str(depth)]
                done = subprocess.run(one, check=True, capture_output=True, text=True)
                spent[tool].append(json.loads(done.stdout.splitlines()[-1]))
        base = median(spent["plain"])
        print(f"{depth} blocks, {nodes} nodes, {1e3 * base:.1f} ms without a tool")
        for tool in found[1:]:
            extra = median(a - b for a, b in zip(spent[tool], spent["plain"], strict=True))
            print(f"  {tool:10} {1e6 * extra / nodes:8.0f} µs a node", flush=True)


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="formats", choices=("formats", "overhead", "one"))
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tool", default="plain", choices=TOOLS, help="for one: the tool")
    parser.add_argument("--depth", type=int, default=30, help="for one: the blocks of the network")
    options = parser.parse_args()
    if options.what == "formats":
        formats(options.nodes)
    elif options.what == "overhead":
        overhead(options.rounds)
    else:
        print(json.dumps(timed(options.tool, options.depth)))


if __name__ == "__main__":
    main()
