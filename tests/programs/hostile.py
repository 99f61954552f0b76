"""Functions that attack the process that checks them, each beside what its case must come to."""

HELPER = """
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
"""

_HEAD = """
import builtins, ctypes, json, os, pathlib, resource, signal, sys, threading, time
from gradcli import engine
from helper import Square


class Panic(BaseException): pass
class Refuses(Exception):
    def __str__(self): raise ValueError("no text")
class Numbers(Exception):
    def __str__(self): return 3
class Mute(Exception):
    def __getattribute__(self, name): raise RuntimeError(name)
class Recursive(Exception):
    def __str__(self): return str(self)


# Without source, so that no time goes into looking for a correction.
tripled = eval("lambda ctx, grad_output: Square.backward(ctx, grad_output) * 3")
"""

CASES: dict[str, tuple[str, str, str]] = {
    # name: (where, statements, what the case comes to)
    "BaseInForward": ("forward", "raise Panic('lost')", "error:forward raised Panic: lost"),
    "BaseInBackward": ("backward", "raise Panic('lost')", "error:backward raised Panic: lost"),
    "GeneratorExits": ("forward", "raise GeneratorExit", "error:GeneratorExit"),
    "Interrupts": ("forward", "raise KeyboardInterrupt", "error:KeyboardInterrupt"),
    "InterruptsLater": ("backward", "raise KeyboardInterrupt", "error:KeyboardInterrupt"),
    "Exits": ("backward", "sys.exit(0)", "error:SystemExit"),
    "ExitsAtOnce": ("backward", "os._exit(0)", "error:os._exit(0)"),
    "Aborts": ("forward", "os.abort()", "error:killed by SIGABRT while it ran in forward, attacks.py line"),
    "AbortsLater": ("backward", "os.abort()", "error:killed by SIGABRT while it ran in backward, attacks.py line"),
    "ReadsNull": ("forward", "ctypes.string_at(0)", "error:killed by SIGSEGV while it ran in forward"),
    "ExitsInC": ("forward", "ctypes.CDLL(None)._exit(7)", "error:ended with exit code 7"),
    "KillsItself": ("forward", "os.kill(os.getpid(), signal.SIGKILL)", "error:killed by SIGKILL"),
    "Terminates": ("backward", "os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)", "error:killed by SIGTERM"),
    "Alarms": ("backward", "signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(5)", "error:SIGALRM"),
    "KillsItsGroup": ("backward", "os.killpg(0, signal.SIGKILL)", "error:killed by SIGKILL"),
    "KillsItsParent": ("backward", "os.kill(os.getppid(), signal.SIGKILL); time.sleep(5)", "error:killed by"),
    "NoText": ("forward", "raise Refuses", "error:forward raised Refuses: (its message cannot be shown"),
    "NumberForText": ("backward", "raise Numbers", "error:backward raised Numbers: (its message cannot be shown"),
    "EndlessText": ("backward", "raise Recursive", "error:backward raised Recursive: (its message cannot be shown"),
    "LongText": ("backward", "raise ValueError('x' * 5_000_000)", "error:(cut: the message has 5,000,000 characters)"),
    "PatchesLen": ("forward", "builtins.len = lambda *a: 3", "error:replaced builtins.len"),
    "PatchesJson": ("backward", "json.dumps = None", "error:replaced json.dumps"),
    "PatchesPath": ("backward", "pathlib.Path = None", "error:replaced pathlib.Path"),
    "PatchesTensor": ("backward", "engine.Tensor.__mul__ = lambda a, b: 1 / 0", "error:replaced Tensor.__mul__"),
    "DropsModules": (
        "backward", "for name in list(sys.modules): name.startswith(('numpy', 'gradcli')) and sys.modules.pop(name)",
        "error:replaced sys.modules",
    ),
    "Closes": ("backward", "os.closerange(0, 200)", "passed"),
    "ChangesFolder": ("backward", "os.chdir('/')", "passed"),
    "LeavesThread": ("backward", "threading.Thread(target=time.sleep, args=(60,)).start()", "passed"),
    "IgnoresSignals": ("backward", "signal.signal(signal.SIGTERM, signal.SIG_IGN)", "passed"),
    "SetsDefaults": ("backward", "engine.set_default_dtype(engine.float16)", "passed"),
    "Forks": ("backward", "if os.fork() == 0: raise ValueError('in the child')", "passed"),
    "ChecksNothing": ("forward", "import gradcli; gradcli.check('nowhere:F')", "error:forward raised TargetError: no"),
    "NoAttributes": ("forward", "raise Mute('lost')", "error:forward raised Mute: lost"),
    "PatchesIsinstance": ("backward", "builtins.isinstance = lambda *a: True", "error:replaced builtins.isinstance"),
    "PatchesApply": ("backward", "engine.autograd.Function.apply = classmethod(lambda c, *a: a[0])", "error:replaced"),
    "LimitsFiles": ("backward", "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))", "passed"),
    "Audits": ("backward", "sys.addaudithook(lambda e, a: 1 / (e != 'os.chdir'))", "passed"),
    "Hangs": ("backward", "while True: pass", "error:(check returns, call 3 (backward) had run for "),
    "WritesToSockets": (
        "backward", "for number in range(3, 600):\n            try: os.write(number, b'junk' * 9)\n"
        "            except OSError: pass", "error:the worker process's connection to gradcli",
    ),
}  # fmt: skip
"""Each followed by a case that is right, and one that is wrong, which must come to what they come to alone."""


def program() -> str:
    """The module of all attacks; after each of them stand a right and a wrong Function."""
    parts = [_HEAD]
    for name, (where, statements, _) in CASES.items():
        context = "ctx, x" if where == "forward" else "ctx, grad_output"
        given = "x" if where == "forward" else "grad_output"
        parts.append(
            f"class {name}(Square):\n    @staticmethod\n    def {where}({context}):\n        {statements}\n"
            f"        return Square.{where}(ctx, {given})\n\n\n"
            f"class Right{name}(Square):\n    pass\n\n\n"
            f"class Wrong{name}(Square):\n    backward = staticmethod(tripled)\n"
        )
    return "\n\n".join(parts)
