"""A suite of sixty cases as a team might have it: right, wrong in ten ways, raising, crashing, hanging, surrogate."""

from pathlib import Path

HEAD = """
import ctypes
import os
import time

from gradcli.engine.autograd import Function


class Right(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 2 * x * w * g, x * x * g


class Raising(Right):
    @staticmethod
    def forward(ctx, x, w):
        raise RuntimeError("<b>boom</b>\\n::error::injected \\x1b[31m")


class Crashing(Right):
    @staticmethod
    def forward(ctx, x, w):
        ctypes.string_at(0)


class Leaving(Right):
    @staticmethod
    def forward(ctx, x, w):
        os._exit(0)


class Hanging(Right):
    @staticmethod
    def backward(ctx, g):
        while True:
            time.sleep(0.01)


class Surrogate(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x > 0) * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * (x > 0)
"""
MISTAKES = {
    "Factor": "x * w * g, x * x * g",
    "Sign": "-2 * x * w * g, x * x * g",
    "Swapped": "x * x * g, 2 * x * w * g",
    "Missing": "2 * x * w * g, None",
    "Ignores": "2 * x * w, x * x * g",
    "Nonlinear": "2 * x * w * g * g, x * x * g",
    "Entries": "2 * x * w * g * (x > 0), x * x * g",
    "Few": "(2 * x * w * g,)",
    "Shape": "(2 * x * w * g).sum(0), x * x * g",
    "NaN": "2 * x * w * g * float('nan'), x * x * g",
}
"""What backward returns."""
WRITTEN_OUT = ("Factor", "Missing")
"""The others are without source, so that no time goes into looking for a correction."""
NAMES = (
    "plain",
    "<script>alert(1)</script>",
    "\"double\" and 'single'",
    "two\\nlines",
    "\U0001f389 and é",
)
RIGHT, PER_MISTAKE = 40, 1
WRONG = PER_MISTAKE * len(MISTAKES)


def write_suite(folder: Path) -> list[str]:
    """Write the module and the specs into `folder`; return the ids of the sixty cases, in order."""
    wrong = "".join(
        f"\n\nclass {name}(Right):\n    spoilt = eval({f'lambda x, w, g: ({returned})'!r})\n\n"
        f"    @staticmethod\n    def backward(ctx, g):\n        x, w = ctx.saved_tensors\n"
        f"        return {returned if name in WRITTEN_OUT else f'{name}.spoilt(x, w, g)'}\n"
        for name, returned in MISTAKES.items()
    )
    (folder / "sixty.py").write_text(HEAD + wrong)
    targets = [("Right", RIGHT), *((name, PER_MISTAKE) for name in MISTAKES)]
    targets += [("Raising", 2), ("Crashing", 2), ("Leaving", 1), ("Hanging", 1), ("Surrogate", 4)]
    documents, ids = [], []
    for place, (name, count) in enumerate(targets):
        cases = [f"{NAMES[(place + number) % len(NAMES)]} {number}" for number in range(count)]
        listed = "".join(
            f"  - {{name: {_quoted(case)}, inputs: {{x: {{shape: [2, 3]}}, w: {{shape: [2, 3]}}}}}}\n" for case in cases
        )
        expect = "expect: surrogate\n" if name == "Surrogate" else ""
        documents.append(f"target: sixty:{name}\ndefaults: {{order: 1, samples: 1}}\n{expect}cases:\n{listed}")
        ids += [f"sixty:{name}[{case}]".replace("\\n", "\n") for case in cases]
    (folder / "specs").mkdir(exist_ok=True)
    (folder / "specs/sixty.yaml").write_text("---\n".join(documents), encoding="utf-8")
    return ids


def _quoted(text: str) -> str:
    """The text as a double-quoted scalar of YAML, in which `\\n` is a line feed."""
    return '"' + text.replace('"', '\\"') + '"'
