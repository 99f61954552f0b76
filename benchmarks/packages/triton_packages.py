"""gradcli on public Triton kernels, on a CPU: Functions of liger-kernel and flash-linear-attention, right and broken.

    python benchmarks/packages/triton_packages.py [functions|planted] [NAME]... [--seeds 0 1 2]

`functions` runs `gradcli check --order 1` on every row, without a GPU in Triton's interpreter, and prints the verdict,
what was found, the resolution, how often forward ran and the processor time. `planted` copies a package's module, makes
one mistake in its kernel, and runs the same row on the copy. A line is printed for each run as it ends. What is not
installed is listed as absent.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One Function at one set of inputs, and what comes of it: nothing, or one or more of the findings named."""

    name: str
    target: str
    flags: tuple[str, ...]
    finding: str = ""
    because: str = ""
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A mistake in a kernel: the row it belongs to, the text replaced, and what has to be found, in which input."""

    row: str
    name: str
    old: str
    new: str
    finding: str
    input: str


def row(
    name: str, target: str, flags: str, *, finding: str = "", because: str = "", allow: tuple[str, ...] = ()
) -> Row:
    """A row with its flags written as on the command line."""
    return Row(name=name, target=target, flags=tuple(flags.split()), finding=finding, because=because, allow=allow)


_SINGLE = " --dtype float32"
_ANGLES = " -i cos=1x3x8,grad=false -i sin=1x3x8,grad=false"
_GROUPS = (
    "-i X=2x4x6 -i affine_scaling_weight=4 -i affine_shifting_bias=4 -a num_channels=4 -a num_groups=2 -a eps=1e-6"
)
_LIGER = "liger_kernel.ops."
_FLA = "fla."
_MUTATES = ("mutates-input",)
_OVER_INPUTS = "backward writes the gradients over the saved inputs, to save memory"
ROWS: tuple[Row, ...] = (
    row("softmax", _LIGER + "softmax:LigerSoftmaxFunction", "-i input_=3x8"),
    row("sparsemax", _LIGER + "sparsemax:LigerSparsemaxFunction", "-i x=3x8 -a dim=-1"),
    row("relu_squared", _LIGER + "relu_squared:LigerReLUSquaredFunction", "-i X=3x8"),
    row(
        "rms_norm", _LIGER + "rms_norm:LigerRMSNormFunction", "-i X=3x8 -i W=8 -a eps=1e-6 -a in_place=False " + _SINGLE
    ),
    row("layer_norm", _LIGER + "layer_norm:LigerLayerNormFunction", "-i X=3x8 -i W=8 -i B=8 -a eps=1e-6 " + _SINGLE),
    row(
        "group_norm",
        _LIGER + "group_norm:LigerGroupNormFunction",
        _GROUPS,
        finding="wrong-gradient nonlinear-backward",
        because="of every dtype but float32 the kernel rounds the gradients of scale and shift to bfloat16",
    ),
    row("group_norm, float32", _LIGER + "group_norm:LigerGroupNormFunction", _GROUPS + _SINGLE),
    row(
        "fused_add_rms_norm",
        _LIGER + "fused_add_rms_norm:LigerFusedAddRMSNormFunction",
        "-i X=3x8 -i R=3x8 -i W=8 -a eps=1e-6 " + _SINGLE,
    ),
    row(
        "geglu",
        _LIGER + "geglu:LigerGELUMulFunction",
        "-i a=3x8 -i b=3x8",
        finding="mutates-input",
        because=_OVER_INPUTS,
    ),
    row(
        "swiglu",
        _LIGER + "swiglu:LigerSiLUMulFunction",
        "-i a=3x8 -i b=3x8",
        finding="mutates-input",
        because=_OVER_INPUTS,
    ),
    row("geglu, allowed", _LIGER + "geglu:LigerGELUMulFunction", "-i a=3x8 -i b=3x8" + _SINGLE, allow=_MUTATES),
    row("swiglu, allowed", _LIGER + "swiglu:LigerSiLUMulFunction", "-i a=3x8 -i b=3x8" + _SINGLE, allow=_MUTATES),
    row("rope", _LIGER + "rope:LigerRopeFunction", "-i q=1x2x3x8 -i k=1x2x3x8" + _ANGLES),
    row(
        "rope, one head",
        _LIGER + "rope:LigerRopeFunction",
        "-i q=1x2x3x8 -i k=1x1x3x8" + _ANGLES,
        finding="mutates-input",
        because="transpose(1, 2).contiguous() of one head is the input itself, which the kernel then rotates in place",
    ),
    row("jsd", _LIGER + "jsd:LigerJSDFunction", "-i _input=3x8 -i target=3x8,grad=false -a beta=0.5"),
    row("kl_div", _LIGER + "kl_div:LigerKLDivLossFunction", "-i y_pred=3x8 -i y_true=3x8,domain=positive,grad=false"),
    row("tvd", _LIGER + "tvd:LigerTVDLossFunction", "-i p=3x8,domain=positive -i q=3x8,domain=positive,grad=false"),
    row(
        "cross_entropy",
        _LIGER + "cross_entropy:LigerCrossEntropyFunction",
        "-i _input=3x8 -i target=3,domain=indices,high=8 -a weight=None",
        finding="mutates-input",
        because="forward writes the gradient over its input, to save memory",
    ),
    row(
        "cross_entropy, allowed",
        _LIGER + "cross_entropy:LigerCrossEntropyFunction",
        "-i _input=3x8 -i target=3,domain=indices,high=8 -a weight=None" + _SINGLE,
        finding="non-contiguous",
        because="of logits that are not contiguous forward makes a copy, which requires no gradient inside of forward: "
        "the kernel leaves the gradient out (HAS_GRADIENTS=_input.requires_grad) and backward returns the logits",
        allow=_MUTATES,
    ),
    row(
        "multi_token_attention",
        _LIGER + "multi_token_attention:LigerMultiTokenAttentionFunction",
        "-i scores=1x2x4x4 -i weight=2x2x3x3 -a padding=1",
    ),
    row(
        "attn_res",
        _LIGER + "attn_res:LigerAttnResFunction",
        "-i V_stacked=2x1x2x4 -i w_query=4 -i w_norm=4 -a eps=1e-6",
    ),
    row("fla swiglu", _FLA + "modules.activations.ops:SwiGLUFunction", "-i x=3x8 -i y=3x8"),
    row("fla swish", _FLA + "modules.activations.ops:SwishFunction", "-i x=3x8"),
    row("fla logsigmoid", _FLA + "modules.activations.ops:LogSigmoidFunction", "-i x=3x8 -a temperature=1.5"),
    row("fla l2norm", _FLA + "modules.norm.l2norm:L2NormFunction", "-i x=3x8 -a eps=1e-6"),
)


def plants(row: str, input_: str, *mistakes: tuple[str, str, str, str]) -> tuple[Planted, ...]:
    """The mistakes of one row, each with its name, the text replaced, the text in its place, and the finding."""
    return tuple(
        Planted(row=row, name=name, old=old, new=new, finding=finding, input=input_)
        for name, old, new, finding in mistakes
    )


_FACTOR, _TERM, _BLOCK = "a factor", "a missing term", "one block off"
_DX = "    dx = y * (dy - dot)\n"
_DX_SQUARED = "    dx_row = dy_row * 2 * relu_x\n"
_TILE = "        new_q_tile_2 = q_tile_2 * cos_row - q_tile_1 * sin_row\n"
_FIRST = "        new_q_tile_1 = q_tile_1 * cos_row + q_tile_2 * sin_row\n"
_STORED = "        tl.store(q_ptr + first_half_q_offsets, new_q_tile_1, mask=first_q_mask)\n"
_NORMED = "    b_dx = b_dy * b_rstd[:, None] - tl.sum(b_dy * b_y, 1)[:, None] * b_y * b_rstd[:, None]\n"
_SWISH = "    b_dx = b_dy * b_s * (1.0 + b_x * (1.0 - b_s))\n"
_RMS = "        dX_row += (rstd_row) * (-(1 / n_cols) * rstd_row * rstd_row * tl.sum(m * X_row, axis=0) * X_row)\n"
PLANTED: tuple[Planted, ...] = (
    *plants(
        "softmax",
        "input_",
        (_FACTOR, _DX, "    dx = 1.25 * y * (dy - dot)\n", "wrong-factor"),
        (_TERM, _DX, "    dx = y * dy\n", "missing-term"),
        (_BLOCK, _DX, _DX + "    dx = tl.where(row_id == 1, 2 * dx, dx)\n", "wrong-entries"),
    ),
    *plants(
        "relu_squared",
        "X",
        (_FACTOR, _DX_SQUARED, "    dx_row = dy_row * relu_x\n", "wrong-factor"),
        (
            _BLOCK,
            _DX_SQUARED,
            _DX_SQUARED + "    dx_row = tl.where(col_offsets < 4, dx_row, 0.5 * dx_row)\n",
            "wrong-entries",
        ),
    ),
    *plants(
        "rope",
        "q",
        (_FACTOR, "dq, dk = rope_backward(", "dq, dk = rope_backward(0.5 * ", "wrong-factor"),
        (
            _TERM,
            _FIRST + _STORED + _TILE,
            "        new_q_tile_1 = q_tile_1 * cos_row\n" + _STORED + "        new_q_tile_2 = q_tile_2 * cos_row\n",
            "missing-term",
        ),
        ("a term missing in half", _TILE, "        new_q_tile_2 = q_tile_2 * cos_row\n", "wrong-entries"),
        (
            _BLOCK,
            _TILE,
            _TILE + "        new_q_tile_2 = tl.where(pid == 1, -new_q_tile_2, new_q_tile_2)\n",
            "wrong-sign",
        ),
    ),
    *plants(
        "fla l2norm",
        "x",
        (_FACTOR, _NORMED, _NORMED + "    b_dx = 1.25 * b_dx\n", "wrong-factor"),
        (_TERM, _NORMED, "    b_dx = b_dy * b_rstd[:, None]\n", "missing-term"),
        (
            _BLOCK,
            _NORMED,
            _NORMED + "    b_dx = tl.where(o_t[:, None] == 1, 2 * b_dx, b_dx)\n",
            "wrong-entries",
        ),
    ),
    *plants(
        "fla swish",
        "x",
        (_FACTOR, _SWISH, _SWISH + "    b_dx = 1.25 * b_dx\n", "wrong-factor"),
        (_TERM, _SWISH, "    b_dx = b_dy * b_s\n", "missing-term"),
        (_BLOCK, _SWISH, _SWISH + "    b_dx = tl.where(row == 1, 2 * b_dx, b_dx)\n", "wrong-entries"),
    ),
    *plants(
        "rms_norm",
        "X",
        (_FACTOR, _RMS, _RMS + "        dX_row = 1.25 * dX_row\n", "wrong-factor"),
        (_TERM, _RMS, "", "missing-term"),
        (_BLOCK, _RMS, _RMS + "        dX_row = tl.where(row_idx == 1, 2 * dX_row, dX_row)\n", "wrong-entries"),
    ),
    *plants("rms_norm", "W", (_FACTOR, "return dX, dW, None", "return dX, 2 * dW, None", "wrong-factor")),
)


def run(target: str, flags: tuple[str, ...], seed: int, folder: str) -> tuple[dict[str, Any] | None, float, str]:
    """The case of one run of the command, its processor time, and what went to standard error."""
    command = [sys.executable, "-m", "gradcli", "check", target, *flags, "--order", "1", "--samples", "1"]
    command += ["--seed", str(seed)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": folder}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = subprocess.run(
        [*command, "--format", "json", "--timeout", "1200"],
        capture_output=True, text=True, cwd=folder, env=environment, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cases = json.loads(finished.stdout)["cases"] if finished.stdout else [None]
    return cases[0], seconds, finished.stderr


def told(case: dict[str, Any] | None, error: str) -> str:
    """The verdict and what was found, in one line."""
    if case is None:
        return "usage: " + (error.strip().splitlines() or [""])[-1]
    found = ", ".join(f"{f['name']}({f['input'] or ''})" for f in case["findings"])
    reasons = ", ".join(sorted({check["reason"] for check in case["checks"] if check["reason"]}))
    return f"{case['verdict']} {found or reasons or (case['error'] or '').partition(chr(10))[0]}"


def shown(name: str, seed: int, case: dict[str, Any] | None, seconds: float, error: str) -> None:
    """Print the line of one run."""
    checks = [] if case is None else [c["resolution"] for c in case["checks"] if c["check"] == "gradient"]
    finest = max((r for r in checks if r is not None), default=None)
    forwards = 0 if case is None else case["evaluations"]["forward"]
    resolution = "" if finest is None else f"{finest:.0e}"
    print(
        f"{name:28} seed {seed}  {resolution:>6}  {forwards:4} forwards  {seconds:5.1f} s  {told(case, error)}",
        flush=True,
    )


def allowing(each: Row, folder: str) -> None:
    """Write down what the row allows, where the command looks for it."""
    lines = [f'{name} = "the kernel saves memory"' for name in each.allow]
    (Path(folder) / "pyproject.toml").write_text("\n".join(["[tool.gradcli.allow]", *lines]), encoding="utf-8")


def planted(names: list[str], seeds: list[int]) -> int:
    """Run every mistake; the number of those that were not found and named."""
    missed = 0
    for each in PLANTED:
        own = next(r for r in ROWS if r.name == each.row)
        module, _, name = own.target.partition(":")
        found = find_spec(module) if find_spec(module.partition(".")[0]) is not None else None
        wanted = not names or each.row in names or f"{each.row}: {each.name}" in names
        if not wanted or found is None or found.origin is None:
            if wanted:
                print(f"{each.row}: {each.name:28} absent")
            continue
        text = Path(found.origin).read_text(encoding="utf-8")
        if text.count(each.old) != 1:
            raise SystemExit(f"{each.row}: {text.count(each.old)} places for {each.old!r}")
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                allowing(own, folder)
                (Path(folder) / "planted.py").write_text(text.replace(each.old, each.new), encoding="utf-8")
                case, seconds, error = run(f"planted:{name}", own.flags, seed, folder)
            shown(f"{each.row}: {each.name}", seed, case, seconds, error)
            told_of = [] if case is None else [(f["name"], f["input"]) for f in case["findings"]]
            if case is None or case["verdict"] != "failed" or (each.finding, each.input) not in told_of:
                print(f"    expected {each.finding}({each.input})", flush=True)
                missed += 1
    print(f"{missed} not found and named")
    return missed


def functions(names: list[str], seeds: list[int]) -> int:
    """Run every row; the number of those that did not come out as explained."""
    unexplained = 0
    for each in ROWS:
        if names and each.name.partition(",")[0] not in names:
            continue
        if find_spec(each.target.partition(".")[0]) is None:
            print(f"{each.name:28} absent")
            continue
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                allowing(each, folder)
                case, seconds, error = run(each.target, each.flags, seed, folder)
            shown(each.name, seed, case, seconds, error)
            found = set() if case is None else {f["name"] for f in case["findings"]}
            expected = "failed" if each.finding else "passed"
            explained = bool(found) == bool(each.finding) and found <= set(each.finding.split())
            unexplained += case is None or case["verdict"] != expected or not explained
    print(f"{unexplained} not as explained")
    return unexplained


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["functions", "planted"], nargs="?", default="functions")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    raise SystemExit(bool((planted if given.what == "planted" else functions)(given.names, given.seeds)))
