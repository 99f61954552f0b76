"""What an error of Triton's most likely means where no GPU runs the kernel, and what to do."""

from collections.abc import Sequence
from types import ModuleType

from gradcli.errors import message_of

_NO_GPU = (
    "Triton found no GPU for its kernels: --triton interpret runs them on the CPU in Triton's interpreter; outside of "
    "gradcli check, set TRITON_INTERPRET=1 before Triton is imported"
)
_ASKS_FOR_GPU = ("Torch not compiled with CUDA enabled", "No CUDA GPUs are available", "Found no NVIDIA driver")
_HINTS: Sequence[tuple[tuple[str, ...], str]] = (
    (("active drivers", "There should only be one"), _NO_GPU),
    (
        ("cannot be accessed from Triton",),
        "the kernel is compiled for a GPU and the tensors are on the CPU: put them on the GPU with --device "
        "cuda, or run the kernel on the CPU with --triton interpret",
    ),
    (
        ("OutsideMemoryError", " writes "),
        "on a GPU this changes the memory of another tensor, or ends with an illegal memory access: mask the store, as "
        "in tl.store(pointer + offsets, value, mask=offsets < n)",
    ),
    (
        ("OutsideMemoryError", " reads "),
        "on a GPU this reads the memory of another tensor: mask the load, as in tl.load(pointer + offsets, "
        "mask=offsets < n, other=0.0), or give inputs whose shapes fit each other",
    ),
    (
        ("CompilationError", "fp64"),
        "the kernel does not compile for float64, in which gradcli checks by default: give --dtype float32",
    ),
    (
        ("not supported in interpreter mode",),
        "Triton's interpreter, which runs kernels without a GPU, lacks this operation: check on a machine with a GPU "
        "by --device cuda --triton gpu, or give the kernel a branch without this operation, chosen by a tl.constexpr "
        "flag",
    ),
    (
        ("`_semantic` argument must be provided",),
        "a function of triton.language was called where it cannot run: either outside of a kernel, or in a kernel "
        "whose own file does not import triton.language as a module (import triton.language as tl), which Triton's "
        "interpreter needs",
    ),
    (
        ("outside of the scope of a kernel",),
        "Triton was imported before TRITON_INTERPRET=1 was set, so Triton's own functions are compiled and "
        "cannot run in its interpreter: set TRITON_INTERPRET=1 first, or give `gradcli check` the target by its name: "
        "gradcli then sets it before it imports the target",
    ),
    (
        ("triton.language must be visible",),
        "Triton's interpreter needs triton.language as a module in the kernel's own file: import triton.language as tl",
    ),
)
"""Parts of a message that all have to be there, and what they mean."""


def explain_kernel_error(error: BaseException) -> str | None:
    """A hint to an exception of Triton's or of code that looks for a GPU; None for any other."""
    text = f"{type(error).__name__}: {message_of(error)}"
    if any(said in text for said in _ASKS_FOR_GPU):
        return _without_gpu(error, text)
    for parts, hint in _HINTS:
        if all(part in text for part in parts):
            return hint
    if type(error).__name__ == "InterpreterError":
        return (
            "raised in a kernel that Triton's interpreter runs on the CPU: if the kernel works on a GPU, the "
            "interpreter lacks something that the kernel uses: check it on a GPU with --device cuda --triton gpu"
        )
    return None


def _without_gpu(error: BaseException, text: str) -> str:
    """What to do where PyTorch was asked for a GPU, by Triton, by the code around its kernels, or by other code."""
    if not _has_kernels(error):
        return (
            "this line wants a GPU, and PyTorch finds none here: put new tensors where the input is, as by "
            "`.to(x.device)` or `device=x.device` in place of `.cuda()`, or run gradcli with --device cuda on a "
            "machine that has a GPU"
        )
    if _ASKS_FOR_GPU[0] not in text:
        return _NO_GPU
    return (
        "the code around the kernels asks PyTorch about a GPU (for its number of multiprocessors, for example), and "
        "this machine has none: do that only under `if x.is_cuda`, or run gradcli with --device cuda on a machine that "
        "has a GPU"
    )


def _has_kernels(error: BaseException) -> bool:
    """Whether a file that an exception passed through imports Triton."""
    traceback = error.__traceback__
    while traceback is not None:
        for value in traceback.tb_frame.f_globals.values():
            name = value.__name__ if isinstance(value, ModuleType) else type(value).__module__
            if str(name).partition(".")[0] == "triton":
                return True
        traceback = traceback.tb_next
    return False
