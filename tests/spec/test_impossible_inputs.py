"""What no run can draw is an error of the spec, at the key that is wrong."""

import pytest

from gradcli.inputs.builders import build


@pytest.mark.parametrize(
    ("unfit", "fit", "problem"),
    [
        ("shape: [3], domain: uniform, lo: 3, hi: 1", "shape: [3], domain: uniform, lo: 1, hi: 3",
         "3:63: domain uniform needs lo < hi, got lo=3, hi=1"),
        ("shape: [3], domain: uniform, lo: 2", "shape: [3], domain: uniform, lo: 0.5",
         "3:56: domain uniform needs lo < hi, got lo=2, hi=1 (the default)"),
        ("shape: [3], domain: uniform, hi: .inf", "shape: [3], domain: open-interval, hi: .inf",
         "3:56: domain uniform needs a finite lo and hi, got lo=-1 (the default), hi=inf"),
        ("shape: [3], domain: 'open-interval(5, 0)'", "shape: [3], domain: 'open-interval(0, 5)'",
         "3:43: domain open-interval needs lo < hi, got lo=5, hi=0"),
        ("shape: [3], domain: npz", "shape: [3], domain: 'npz:x.npz'",
         "3:43: domain npz needs a file, as in npz:data.npz"),
        ("shape: [3, 4], domain: spd", "shape: [2, 4, 4], domain: spd",
         "3:30: domain spd needs a square matrix (two equal sizes at the end), got shape [3, 4]"),
        ("shape: [3], domain: indices, high: 0", "shape: [3], domain: indices, low: -2, high: 0",
         "3:58: domain indices needs low < high (high itself is not drawn), got low=0, high=0"),
        ("shape: [3], domain: 'indices(4, 4)'", "shape: [3], domain: 'indices(3, 4)'",
         "3:43: domain indices needs low < high (high itself is not drawn), got low=4, high=4"),
        ("shape: [3, 0], domain: one-hot", "shape: [0, 3], domain: one-hot",
         "3:30: domain one-hot needs a last axis of at least one class, got shape [3, 0]"),
        ("shape: [5], domain: 'permutation(3)'", "shape: [5], domain: 'permutation(5)'",
         "3:43: domain permutation needs high of at least its last size 5, got high=3"),
        ("shape: [3], domain: boolean, grad: true", "shape: [3], domain: boolean, grad: false",
         "3:58: grad: true needs a float or complex dtype, got bool"),
        ("value: [1, 2], grad: true", "value: [1, 2.0], grad: true",
         "3:44: grad: true needs a float or complex dtype, got int64"),
        ("shape: [3], layout: csr", "shape: [3, 3], layout: csr", "3:43: layout csr needs a matrix, got shape [3]"),
        ("shape: [n, 2], domain: spd", "shape: [n, n], domain: spd",
         "3:30: domain spd needs a square matrix (two equal sizes at the end), got shape [1, 2]"),
    ],
)  # fmt: skip
def test_what_can_never_be_drawn_is_an_error_at_its_key(load, problems, unfit, fit, problem):
    document = "target: a:B\nsizes: {n: [1, 2]}\ncases: [{inputs: {x: {{INPUT}}}}]\n"
    assert problems(document.replace("{INPUT}", unfit)) == [problem]
    for case in load(document.replace("{INPUT}", fit)):
        if "npz" not in fit:
            build(case.inputs, seed=0)
