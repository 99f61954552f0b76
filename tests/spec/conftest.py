"""A spec of a test, written to a file and loaded, and the problems that it has."""

import pytest

from gradcli.errors import SpecError
from gradcli.spec.load import load_specs


@pytest.fixture
def load(tmp_path):
    def write_and_load(text, name="spec.yaml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_specs(path)

    return write_and_load


@pytest.fixture
def problems(load, tmp_path):
    def of(text):
        with pytest.raises(SpecError) as caught:
            load(text)
        prefix = f"{tmp_path}/spec.yaml:"
        assert all(problem.startswith(prefix) for problem in caught.value.problems)
        return [problem.removeprefix(prefix) for problem in caught.value.problems]

    return of
