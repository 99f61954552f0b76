"""Modules of a user, written into a temporary folder by the tests."""

from pathlib import Path

FUNCTIONS = '''
from gradcli.engine.autograd import Function


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class Forgets(Square):
    """The factor 2 was forgotten."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return x * grad_output


class Raises(Square):
    @staticmethod
    def forward(ctx, x):
        return x.undefined_thing()


class Product(Function):
    @staticmethod
    def forward(ctx, x, y, scale=1.0):
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * y * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y * ctx.scale, grad_output * x * ctx.scale, None


class Rectified(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x >= 0)
'''

NOISY = """
import atexit
import os
import subprocess
import sys

from functions import Square

print("printed at import")
sys.__stdout__.write("through the original stream\\n")
os.write(1, b"written to descriptor 1 at import\\n")
subprocess.run([sys.executable, "-c", "print('from a child process')"], check=True)
atexit.register(lambda: print("printed at exit"))
atexit.register(os.write, 1, b"written to descriptor 1 at exit\\n")


class Loud(Square):
    @staticmethod
    def forward(ctx, x):
        print("printed in forward")
        os.write(1, b"written in forward\\n")
        return Square.forward(ctx, x)

    @staticmethod
    def backward(ctx, grad_output):
        print("printed in backward")
        return Square.backward(ctx, grad_output)
"""

DEADLY = """
import ctypes
import os
import time

from functions import Square


class Segfaults(Square):
    @staticmethod
    def forward(ctx, x):
        ctypes.string_at(0)


class Leaves(Square):
    @staticmethod
    def forward(ctx, x):
        os._exit(7)


class Hangs(Square):
    @staticmethod
    def forward(ctx, x):
        while True:
            time.sleep(0.01)


class Unharmed(Square):
    pass
"""


def write_modules(folder: Path) -> None:
    """Write the modules `functions`, `noisy` and `deadly` into the folder."""
    for name, text in (("functions", FUNCTIONS), ("noisy", NOISY), ("deadly", DEADLY)):
        (folder / f"{name}.py").write_text(text)
