"""Where Triton kernels run, decided before the user's module is imported and without importing Triton."""

import os
import sys
from pathlib import Path

import pytest

from gradcli.runner import kernels
from gradcli.runner.planning.limits import require_settings
from gradcli.settings import Settings
from tests.conftest import Run

TELLS = """
import os
import sys
raise ImportError(f"mode {os.environ.get('TRITON_INTERPRET')}, imported {'triton' in sys.modules}")
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a package called triton lies, on a machine whose GPUs are hidden."""
    (folder / "triton").mkdir()
    (folder / "triton" / "__init__.py").write_text("")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    return folder


@pytest.mark.parametrize(
    ("mode", "set_before", "expected"),
    [
        ("auto", None, {kernels.VARIABLE: "1"}),
        ("auto", "0", {}),
        ("interpret", "0", {kernels.VARIABLE: "1"}),
        ("gpu", "1", {kernels.VARIABLE: "0"}),
    ],
)
def test_an_explicit_mode_overrides_the_environment_and_auto_respects_it(
    installed: Path, monkeypatch: pytest.MonkeyPatch, mode: str, set_before: str | None, expected: dict[str, str]
) -> None:
    if set_before is not None:
        monkeypatch.setenv(kernels.VARIABLE, set_before)
    assert kernels.kernel_environment(mode, [str(installed)]) == expected


def test_auto_changes_nothing_without_triton_or_beside_a_gpu(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = installed / "empty"
    empty.mkdir()
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    assert kernels.kernel_environment("auto", [str(empty)]) == {}
    driver = installed / "nvidiactl"
    driver.write_text("")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(kernels, "_DRIVERS", (str(driver),))
    assert kernels.has_gpu()
    assert kernels.kernel_environment("auto", [str(installed)]) == {}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert not kernels.has_gpu()


@pytest.mark.parametrize(
    ("options", "mode"),
    [((), "1"), (("--triton", "interpret"), "1"), (("--triton=gpu",), "0"), (("--in-process",), "1")],
)
def test_the_mode_is_set_before_the_module_is_imported_and_triton_is_not_imported(
    installed: Path, gradcli: Run, options: tuple[str, ...], mode: str
) -> None:
    (installed / "tells.py").write_text(TELLS)
    path = os.pathsep.join([str(ROOT), str(installed)])
    ran = gradcli("check", "tells.py:F", *options, environment={"PYTHONPATH": path})
    assert f"mode {mode}, imported False" in (ran.stdout + ran.stderr).decode()
    assert ran.returncode == 2


def test_another_mode_is_refused(gradcli: Run) -> None:
    ran = gradcli("check", "functions:Square", "--triton", "cuda")
    assert ran.returncode == 2
    assert b"--triton cuda: expected interpret, gpu or auto" in ran.stderr
    assert require_settings(Settings(triton="gpu")).triton == "gpu"
