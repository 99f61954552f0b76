"""What is distributed: the source archive holds what the tests need, and the wheel everything that gradcli reads."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".gradcli", ".hypothesis", "*.pyc", "*.egg-info", ".*_cache")
PARTS = ("gradcli", "tests", "specs", "docs", "benchmarks", "tools")
PAGES = ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md")
FILES = (*PAGES, "pyproject.toml", "MANIFEST.in", "action.yml", "mkdocs.yml")
BUILD = "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, built."""
    pytest.importorskip("setuptools", minversion="77", reason="the project is built by setuptools 77 or later")
    copy = tmp_path_factory.mktemp("project")
    for part in PARTS:
        shutil.copytree(ROOT / part, copy / part, ignore=LEFT_OUT)
    for name in FILES:
        shutil.copy(ROOT / name, copy)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [sys.executable, "-c", BUILD], cwd=copy, env=environment, check=True, capture_output=True, timeout=120
    )
    return copy


def files_of(project: Path, part: str) -> set[str]:
    return {file.relative_to(project).as_posix() for file in (project / part).rglob("*") if file.is_file()}


def test_the_source_archive_holds_everything_that_the_tests_need(project: Path) -> None:
    (archive,) = (project / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        held = {name.partition("/")[2] for name in opened.getnames()}
    for part in PARTS:
        assert files_of(project, part) <= held
    assert set(FILES) <= held


def test_the_wheel_holds_the_package_and_nothing_else(project: Path) -> None:
    (archive,) = (project / "dist").glob("*.whl")
    with zipfile.ZipFile(archive) as opened:
        held = {name for name in opened.namelist() if ".dist-info/" not in name}
        metadata = opened.read(next(n for n in opened.namelist() if n.endswith("/METADATA"))).decode()
    assert held == files_of(project, "gradcli")
    assert metadata.partition("\n\n")[2].strip() == (project / "README.md").read_text(encoding="utf-8").strip()
