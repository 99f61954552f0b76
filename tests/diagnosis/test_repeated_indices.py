"""An assignment to repeated indices keeps the last of them only, so rows that are selected more than once are wrong."""

import pytest

import gradcli


@pytest.mark.parametrize("index", [[[0, 1, 1], [1, 0, 1]], [[0, 0], [1, 1], [0, 1]]], ids=str)
def test_rows_that_an_index_selects_twice_are_named(tmp_path, index):
    file = tmp_path / "embedding.py"
    file.write_text(
        "import numpy as np\n\n\ndef embedding(x, W):\n    return W[x]\n\n\n"
        "def embedding_backward(dout, x, W):\n    dW = np.zeros_like(W)\n    dW[x] += dout\n    return dW\n"
    )
    inputs = {"x": {"value": index}, "W": {"shape": [5, 2]}}
    case = gradcli.check(f"{file}:embedding", inputs, grad=f"{file}:embedding_backward", order=1, samples=1).cases[0]
    (finding,) = case.findings
    assert "the rows that x selects more than once" in finding.message


@pytest.mark.parametrize(("factor", "verdict"), [("1", "passed"), ("(1 + W[x] ** 2)", "failed")])
def test_rows_whose_values_are_all_added_are_not_said_to_be_lost(tmp_path, factor, verdict):
    """All selected rows occur twice here, but they are wrong for another reason than that."""
    file = tmp_path / "embedding.py"
    file.write_text(
        "import numpy as np\n\n\ndef embedding(x, W):\n    return np.sin(W[x])\n\n\n"
        "def embedding_backward(dout, x, W):\n    dW = np.zeros_like(W)\n"
        f"    np.add.at(dW, x, dout * np.cos(W[x]) * {factor})\n    return dW\n"
    )
    inputs = {"x": {"value": [0, 1, 1, 0]}, "W": {"shape": [5, 2]}}
    found = gradcli.check(f"{file}:embedding", inputs, grad=f"{file}:embedding_backward", order=1, samples=1)
    assert found.cases[0].verdict.value == verdict
    assert not any("more than once" in finding.message for finding in found.cases[0].findings)
