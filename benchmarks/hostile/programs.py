# ruff: noqa: E501 - programs of one line each
"""Modules that attack the process that checks them, while they are imported and while they run."""

NEIGHBOUR = """
from gradcli.engine.autograd import Function


class Right(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Wrong(Right):
    @staticmethod
    def backward(ctx, g):
        return 3 * Right.backward(ctx, g)
"""

_HEAD = """
import abc, asyncio, atexit, builtins, codecs, copyreg, ctypes, decimal, faulthandler, fcntl, functools, gc, importlib
import inspect, io, itertools, json, locale, logging, math, multiprocessing, operator, os, pickle, random, resource
import select, signal, socket, subprocess, sys, tempfile, threading, time, traceback, tracemalloc, types, typing
import warnings, weakref
import numpy as np
from gradcli import engine
from good import Right


class Str(Exception):
    def __str__(self): return "\\x1b[2J\\n::error::planted\\n" * 3
class Hangs(Exception):
    def __str__(self):
        while True: pass
class HangsInRepr:
    def __repr__(self):
        while True: pass
class Exits(Exception):
    def __str__(self): os._exit(0)
class NoDict(Exception):
    __slots__ = ()
    def __getattribute__(self, name): raise RuntimeError("no attributes")
class Meta(type):
    def __repr__(cls): raise ValueError("no repr")
    def __str__(cls): raise ValueError("no str")
class Unnamed(Exception, metaclass=Meta): pass
class Tuple(tuple):
    def __iter__(self): raise RuntimeError("cannot be iterated")
class Dies:
    def __del__(self): os.abort()
class Late:
    def __del__(self): raise ValueError("in __del__")
"""

CALLS: dict[str, tuple[str, str, str]] = {
    # exceptions
    "EscapesInMessage": ("forward", "raise Str", "error:Str"),
    "HangsInMessage": ("forward", "raise Hangs", "error"),
    "ExitsInMessage": ("backward", "raise Exits", "error"),
    "NoAttributes": ("forward", "raise NoDict('x')", "error:NoDict"),
    "NoClassName": ("backward", "raise Unnamed('lost')", "error:lost"),
    "Chained": ("forward", "e = ValueError('a'); e.__cause__ = e; raise e", "error:ValueError"),
    "Grouped": ("forward", "raise BaseExceptionGroup('many', [KeyboardInterrupt(), SystemExit(3)])", "error:many"),
    "StopsIteration": ("forward", "raise StopIteration(3)", "error:StopIteration"),
    "Cancels": ("backward", "raise asyncio.CancelledError", "error:CancelledError"),
    "ExitsWithText": ("forward", "sys.exit('text of an exit')", "error:text of an exit"),
    "ExitsWithObject": ("backward", "sys.exit(object())", "error:SystemExit"),
    "Asserts": ("forward", "assert False, np.zeros(10**6)", "error:AssertionError"),
    "Surrogate": ("forward", "raise ValueError('\\udcff\\ud800 lone surrogates')", "error:lone surrogates"),
    "Bytes": ("backward", "raise ValueError(b'\\xff\\x00', float('nan'))", "error:ValueError"),
    "DeepTraceback": ("forward", "(lambda f: f(f, 900))(lambda f, n: f(f, n - 1) if n else 1 / 0)", "error:ZeroDivision"),
    "DeepCauses": ("forward", "e = ValueError(0)\n        for n in range(3000):\n            o = ValueError(n); o.__context__ = e; e = o\n        raise e", "error:ValueError"),
    "Recurses": ("backward", "(lambda f: f(f))(lambda f: f(f))", "error:RecursionError"),
    "RecursesDeep": ("backward", "sys.setrecursionlimit(10**6); (lambda f: f(f))(lambda f: f(f))", "error"),
    "OutOfMemory": ("forward", "raise MemoryError", "error:MemoryError"),
    "HugeArray": ("forward", "np.ones(10**14)", "error:MemoryError"),
    "RaisesWarning": ("forward", "warnings.simplefilter('error'); warnings.warn('as an error')", "error:as an error"),
    "HooksExceptions": ("forward", "sys.excepthook = lambda *a: os._exit(0); raise ValueError('hooked')", "error:hooked"),
    # ends of the process
    "KillsByAbort": ("forward", "ctypes.CDLL(None).abort()", "error:SIGABRT"),
    "DividesInC": ("backward", "os.kill(os.getpid(), signal.SIGFPE)", "error:SIGFPE"),
    "ExitsQuickly": ("backward", "ctypes.CDLL(None).quick_exit(0)", "error:exit code 0"),
    "Execs": ("forward", "os.execv('/bin/true', ['true'])", "error"),
    "ExecsLoud": ("backward", "os.execv('/bin/echo', ['echo', '{\"verdict\": \"passed\"}'])", "error"),
    "ForksAndExits": ("forward", "os.fork() and os._exit(0)", "error:os._exit(0)"),
    "ExitsInThread": ("backward", "t = threading.Thread(target=lambda: ctypes.CDLL(None)._exit(0)); t.start(); t.join()", "error:exit code 0"),
    "SignalsTheStop": ("forward", "os.kill(os.getpid(), signal.SIGSTOP)", "error:time limit"),
    "HangsUp": ("backward", "os.kill(os.getpid(), signal.SIGHUP); time.sleep(60)", "error"),
    "Interrupted": ("backward", "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", "error"),
    "KillsByTimer": ("backward", "signal.setitimer(signal.ITIMER_PROF, 0.01)\n        while True: pass", "error:SIGPROF"),
    "CpuLimit": ("forward", "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n        while True: pass", "error:killed by"),
    "DiesInDel": ("backward", "Dies()", "error:SIGABRT"),
    "DiesLater": ("backward", "globals().setdefault('kept', Dies())", "passed/error"),
    # hangs
    "SleepsDeaf": ("backward", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64)); time.sleep(600)", "error:time limit"),
    "CatchesAll": ("backward", "while True:\n            try:\n                while True: pass\n            except BaseException: pass", "error:time limit"),
    "WaitsInC": ("forward", "ctypes.CDLL(None).pause()", "error:time limit"),
    "Deadlocks": ("backward", "lock = threading.Lock(); lock.acquire(); lock.acquire()", "error:time limit"),
    "JoinsItself": ("forward", "multiprocessing.Process(target=time.sleep, args=(600,)).start() or time.sleep(600)", "error:time limit"),
    "ReadsStdin": ("forward", "input()", "error:EOFError"),
    "ReadsAPipe": ("backward", "os.read(os.pipe()[0], 1)", "error:time limit"),
    "LoopsInDel": ("forward", "class L:\n            def __del__(self):\n                while True: pass\n        L()", "error:time limit"),
    "HangsAtExit": ("backward", "atexit.register(time.sleep, 600)", "passed"),
    "RaisesAtExit": ("backward", "atexit.register(lambda: 1 / 0)", "passed"),
    # what is left behind
    "PatchesRange": ("forward", "builtins.range = lambda *a: iter(())", "error:builtins.range"),
    "PatchesIsinstance": ("backward", "builtins.isinstance = lambda *a: True", "error:builtins.isinstance"),
    "PatchesImport": ("forward", "builtins.__import__ = None", "error:builtins.__import__"),
    "PatchesOpen": ("backward", "builtins.open = lambda *a, **k: io.StringIO()", "error:builtins.open"),
    "DeletesPrint": ("forward", "del builtins.print", "error"),
    "PatchesAbs": ("backward", "np.abs = lambda a: a * 0", "error:numpy.abs"),
    "PatchesZeros": ("backward", "np.zeros = np.ones", "error:numpy.zeros"),
    "PatchesAllclose": ("backward", "np.linalg.norm = lambda *a: 0.0", "error:norm"),
    "PatchesTime": ("backward", "time.monotonic = lambda: 0.0; time.perf_counter = lambda: 0.0", "error/passed"),
    "PatchesStruct": ("backward", "pickle.dumps = lambda *a: b''", "error/passed"),
    "PatchesEngine": ("backward", "engine.Tensor.detach = lambda self: self", "error:Tensor.detach"),
    "PatchesApply": ("backward", "engine.autograd.Function.apply = classmethod(lambda c, *a: a[0])", "error/passed"),
    "PatchesOwnClass": ("backward", "Right.backward = staticmethod(lambda ctx, g: g)", "failed/passed/error"),
    "RandomSeeds": ("forward", "np.random.seed(0); random.seed(0)", "passed"),
    "SetsErrors": ("forward", "np.seterr(all='raise')", "passed"),
    "SetsPrecision": ("backward", "np.set_printoptions(threshold=10**9, formatter={'all': lambda x: 1 / 0})", "passed"),
    "SetsLocale": ("backward", "locale.setlocale(locale.LC_ALL, 'C')", "passed"),
    "SetsRecursion": ("backward", "sys.setrecursionlimit(150)", "passed/error"),
    "DisablesGc": ("backward", "gc.disable(); gc.set_threshold(1)", "passed"),
    "Traces": ("forward", "sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)", "passed"),
    "TracesBadly": ("backward", "sys.settrace(lambda *a: 1 / 0)", "passed/error"),
    "Environment": ("backward", "os.environ.clear()", "passed"),
    "PathGone": ("backward", "sys.path[:] = []", "passed"),
    "ModulesGone": ("backward", "[sys.modules.pop(n) for n in list(sys.modules) if n.startswith('json')]", "error:sys.modules"),
    "SwitchInterval": ("backward", "sys.setswitchinterval(5)", "passed"),
    "LogsToStdout": ("backward", "logging.basicConfig(stream=sys.stdout, force=True); logging.error('x' * 10**6)", "passed"),
    "PrintsMuch": ("forward", "print('{}' * 10**6); os.write(1, b'[' * 10**6); os.write(2, b'x' * 10**6)", "passed"),
    "ClosesStreams": ("backward", "sys.stdout.close(); sys.stderr.close()", "passed/error"),
    "NoStreams": ("backward", "sys.stdout = sys.stderr = sys.stdin = None", "passed/error"),
    "BadStreams": ("backward", "sys.stderr = sys.stdout = object()", "passed/error"),
    "DuplicatesOver": ("backward", "[os.dup2(0, n) for n in range(1, 40)]", "passed"),
    "FillsDescriptors": ("forward", "globals().setdefault('held', [open('/dev/null') for _ in range(200)])", "passed"),
    "NoDescriptors": ("backward", "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))", "passed/error"),
    "NoFiles": ("backward", "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))", "passed/error"),
    "LittleMemory": ("forward", "resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20)); np.ones(10**9)", "error"),
    "Threads": ("backward", "[threading.Thread(target=time.sleep, args=(99,)).start() for _ in range(20)]", "passed"),
    "Children": ("backward", "subprocess.Popen(['sleep', '99'])", "passed"),
    "Umask": ("backward", "os.umask(0o777)", "passed"),
    "FaultHandler": ("backward", "faulthandler.disable()", "passed"),
    "FaultsLater": ("backward", "faulthandler.dump_traceback_later(1, exit=True); time.sleep(20)", "error"),
    "IgnoresChildren": ("backward", "signal.signal(signal.SIGCHLD, signal.SIG_IGN)", "passed"),
    "SwallowsSignals": ("backward", "[signal.signal(n, lambda *a: None) for n in (2, 10, 12, 14, 15)]", "passed"),
    "ChangesGroup": ("backward", "os.setpgid(0, 0) if os.getpgid(0) != os.getpid() else None", "passed"),
    "Decimal": ("backward", "decimal.getcontext().prec = 1", "passed"),
    # results
    "ReturnsGenerator": ("backward", "return (x for x in [grad_output])", "failed"),
    "ReturnsCoroutine": ("backward", "return asyncio.sleep(0)", "failed"),
    "ReturnsHuge": ("backward", "return engine.zeros(10**6) + 1", "failed:wrong-shape"),
    "ReturnsTuple": ("backward", "return Tuple((grad_output,))", "failed/error"),
    "ReturnsSelf": ("backward", "return ctx", "failed"),
    "ReturnsNotImplemented": ("backward", "return NotImplemented", "failed"),
    "ReturnsRepr": ("backward", "return HangsInRepr()", "failed/error"),
    "ForwardString": ("forward", "return 'text'", "error/inconclusive"),
    "ForwardContext": ("forward", "return ctx", "error/inconclusive"),
    "ForwardRepr": ("forward", "return HangsInRepr()", "error/inconclusive"),
    "ForwardNested": ("forward", "return [[x * x]]", "error/inconclusive"),
    "DeletesSaved": ("backward", "del ctx.saved_tensors", "error"),
    "ContextGone": ("backward", "ctx.__dict__.clear()", "error/passed/failed"),
    "SavesEverything": ("forward", "ctx.all = globals()", "passed"),
    "LateDel": ("forward", "ctx.late = Late()", "passed"),
    "AsyncLoop": ("backward", "asyncio.run(asyncio.sleep(0))", "passed"),
    "NestedCheck": ("backward", "__import__('gradcli').check(Right)", "passed/error"),
    "Collects": ("backward", "gc.collect(); gc.callbacks or gc.callbacks.append(lambda *a: 1 / 0)", "passed"),
    "AuditHook": ("backward", "sys.addaudithook(lambda e, a: (_ for _ in ()).throw(ValueError(e)) if e == 'os.chdir' else None)", "passed/error"),
}  # fmt: skip
"""Where it attacks, with what, and the verdicts that are right with a word of the answer; a wrong one follows each."""

TORCH: dict[str, tuple[str, str, str]] = {
    "MetaGradient": ("backward", "return torch.empty(3, device='meta')", "failed"),
    "MetaOutput": ("forward", "return torch.empty(3, device='meta')", "error/failed/inconclusive"),
    "MetaDevice": ("backward", "torch.set_default_device('meta')", "passed/error"),
    "HalfDefault": ("backward", "torch.set_default_dtype(torch.float16)", "passed"),
    "NoGrad": ("backward", "torch.set_grad_enabled(False)", "failed:not-twice-differentiable"),
    "Inference": ("forward", "torch.inference_mode(True).__enter__()", "passed/error/failed"),
    "PatchesMul": ("backward", "torch.Tensor.__mul__ = lambda a, b: a", "error:Tensor.__mul__"),
    "PatchesDetach": ("backward", "torch.Tensor.detach = lambda self: 1 / 0", "error:detach"),
    "PatchesFuncVmap": ("backward", "torch.func.vmap = torch.vmap = lambda *a, **k: 1 / 0", "error/passed"),
    "PatchesApply": ("backward", "torch.autograd.Function.apply = None", "error"),
    "PatchesGrad": ("backward", "torch.autograd.grad = lambda *a, **k: ()", "error/passed"),
    "PatchesManualSeed": ("backward", "torch.manual_seed = lambda *a: 1 / 0", "error/passed"),
    "Deterministic": ("backward", "torch.use_deterministic_algorithms(True)", "passed"),
    "Threads": ("backward", "torch.set_num_threads(1)", "passed"),
    "Printing": ("backward", "torch.set_printoptions(precision=0, threshold=1)", "passed"),
    "Sparse": ("backward", "return (2 * ctx.saved_tensors[0] * g).to_sparse()", "passed/failed/error"),
    "Anomaly": ("backward", "torch.autograd.set_detect_anomaly(True)", "passed"),
    "ReturnsList": ("backward", "return [2 * ctx.saved_tensors[0] * g]", "failed"),
    "ReturnsFloats": ("backward", "return [1.0]", "failed"),
    "ReturnsParameter": ("backward", "return torch.nn.Parameter(2 * ctx.saved_tensors[0].detach() * g.detach())", "passed/failed"),
    "ResizesStorage": ("backward", "g.untyped_storage().resize_(0)", "error/failed"),
    "FreesInput": ("forward", "x.untyped_storage().resize_(0)", "error/failed"),
    "SetsData": ("forward", "x.data = torch.zeros(7)", "error/failed"),
    "RequiresGrad": ("forward", "x.requires_grad_(False)", "error/failed/passed"),
    "FakeMode": ("forward", "from torch._subclasses.fake_tensor import FakeTensorMode; FakeTensorMode().__enter__()", "error/failed/inconclusive"),
    "FunctionMode": ("backward", "from torch.overrides import BaseTorchFunctionMode; BaseTorchFunctionMode().__enter__()", "passed/error"),
    "NanChecks": ("backward", "raise torch.cuda.OutOfMemoryError('CUDA out of memory')", "error:out of memory"),
    "AbortsInTorch": ("backward", "torch._C._crash_if_csrc_asan(3); os.abort()", "error:killed by"),
    "HangsInTorch": ("backward", "torch.futures.Future().wait()", "error:time limit"),
    "DropsTorch": ("backward", "[sys.modules.pop(n) for n in list(sys.modules) if n.startswith('torch')]", "error"),
}  # fmt: skip

_F = "\nfrom good import Right\nclass F(Right): pass\n"
IMPORTS: dict[str, tuple[str, str]] = {
    "exits_text": ("import sys; sys.exit('text')", "error"),
    "exits_zero": ("import sys; sys.exit(0)", "error"),
    "exits_hard": ("import os; os._exit(0)", "error"),
    "aborts": ("import os; os.abort()", "error"),
    "reads_null": ("import ctypes; ctypes.string_at(0)", "error"),
    "kills": ("import os; os.kill(os.getpid(), 9)", "error"),
    "stops": ("import os, signal; os.kill(os.getpid(), signal.SIGTERM); import time; time.sleep(99)", "error"),
    "execs": ("import os; os.execv('/bin/true', ['true'])", "error"),
    "forks": ("import os\nif os.fork() == 0: os._exit(0)" + _F, "passed"),
    "fork_returns": ("import os\nos.fork()" + _F, "passed/error"),
    "getattr_raises": ("def __getattr__(name): raise BaseException(name)", "error"),
    "getattr_lazy": (_F.replace("F(", "G(") + "def __getattr__(name):\n    if name == 'F': return G\n    raise AttributeError(name)", "passed"),
    "getattr_loops": ("def __getattr__(name): return __getattr__(name)", "error"),
    "circular": ("import circular_too\nfrom circular_too import Nothing", "error"),
    "imports_itself": ("from imports_itself import F", "error"),
    "syntax": ("class F(:\n", "error"),
    "tabs": ("if True:\n\tx = 1\n        y = 2\n", "error"),
    "nul": ("x = 1\x00\n", "error"),
    "encoding": ("# coding: nonsense\nx = 1\n", "error"),
    "deep": ("x = " + "(" * 5000 + ")" * 5000, "error"),
    "deep_lists": ("x = " + "[" * 150 + "]" * 150 + _F, "passed/error"),
    "names_nothing": ("x = 1", "error"),
    "a_function": ("def F(x): return x * x", "passed/error/inconclusive/failed"),
    "a_generator": ("def F(x): yield x", "error/inconclusive"),
    "a_coroutine": ("async def F(x): return x", "error/inconclusive"),
    "an_async_generator": ("async def F(x): yield x", "error/inconclusive"),
    "a_number": ("F = 3", "error"),
    "a_module": ("import os as F", "error"),
    "a_proxy": ("class P:\n    def __getattr__(self, n): raise RuntimeError(n)\n    def __call__(self, x): raise SystemExit\nF = P()", "error"),
    "a_metaclass": ("from gradcli.engine.autograd import Function\nclass M(type(Function)):\n    def __getattribute__(c, n): raise RuntimeError(n)\ntry:\n    class F(Function, metaclass=M): pass\nexcept Exception: raise", "error"),
    "without_forward": ("from gradcli.engine.autograd import Function\nclass F(Function): pass", "error"),
    "forward_property": ("from gradcli.engine.autograd import Function\nclass F(Function):\n    forward = property(lambda s: 1 / 0)\n    backward = 3", "error"),
    "forward_builtin": ("from gradcli.engine.autograd import Function\nclass F(Function):\n    forward = staticmethod(print)\n    backward = staticmethod(len)", "error/failed"),
    "many_arguments": ("from gradcli.engine.autograd import Function\nclass F(Function):\n    @staticmethod\n    def forward(ctx, *a, **k): raise TypeError('no')\n    @staticmethod\n    def backward(ctx, *g): pass", "error"),
    "closes": ("import os; os.closerange(0, 300)" + _F, "passed/error"),
    "prints": ("print('{\"cases\": []}' * 10000)" + _F, "passed"),
    "patches_len": ("import builtins; builtins.len = lambda x: 0" + _F, "passed/error/failed"),
    "patches_numpy": ("import numpy; numpy.array = None" + _F, "error/passed"),
    "changes_folder": ("import os; os.chdir('/')" + _F, "passed"),
    "empties_path": ("import sys; sys.path.clear()" + _F, "passed/error"),
    "drops_gradcli": ("import sys\n[sys.modules.pop(n) for n in list(sys.modules) if n.startswith('gradcli')]" + _F, "passed/error"),
    "atexit_loops": ("import atexit, time; atexit.register(time.sleep, 600)" + _F, "passed"),
    "threads": ("import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()" + _F, "passed"),
    "settrace": ("import sys; sys.settrace(lambda *a: None)" + _F, "passed"),
    "warns": ("import warnings; warnings.simplefilter('error'); import warnings as w; w.warn('x')", "error"),
    "raises_group": ("raise ExceptionGroup('g', [ValueError(1), TypeError(2)])", "error"),
    "raises_deep": ("e = ValueError('x' * 10**7)\nraise e", "error"),
    "recurses": ("def f(): f()\nf()", "error"),
    "missing": ("import a_module_that_does_not_exist", "error"),
    "lazily_missing": ("def __getattr__(n):\n    import a_module_that_does_not_exist", "error"),
    "shadows": ("import sys; sys.modules['good'] = None\nfrom good import Right", "error"),
    "replaces_itself": ("import sys, types; sys.modules[__name__] = types.SimpleNamespace()" + _F, "passed/error"),
    "signals": ("import signal\n[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]" + _F, "passed"),
    "raises_stop": ("raise StopIteration", "error"),
    "raises_interrupt": ("raise KeyboardInterrupt", "error"),
    "raises_generator_exit": ("raise GeneratorExit", "error"),
    "hangs": ("while True: pass", "error"),
}  # fmt: skip
"""What the module is, and the verdicts that are right for its F."""


def program() -> str:
    """The module of the attacks on the engine, each followed by a wrong Function."""
    return _module(_HEAD, CALLS, "Right", "grad_output")


def torch_program() -> str:
    """The same for PyTorch."""
    text = NEIGHBOUR.replace("from gradcli.engine.autograd import Function", "from torch.autograd import Function")
    return _module("import os, sys, torch\n" + text, TORCH, "Right", "g").replace("class Right(", "class Right(", 1)


def _module(head: str, table: dict[str, tuple[str, str, str]], base: str, cotangent: str) -> str:
    parts = [head]
    for name, (where, statements, _) in table.items():
        given = "x" if where == "forward" else cotangent
        parts.append(
            f"class {name}({base}):\n    @staticmethod\n    def {where}(ctx, {given}):\n        {statements}\n"
            f"        return {base}.{where}(ctx, {given})\n\n\n"
            f"class Wrong{name}({base}):\n    @staticmethod\n    def backward(ctx, {cotangent}):\n"
            f"        return {base}.backward(ctx, {cotangent}) * 3\n"
        )
    return "\n\n".join(parts)
