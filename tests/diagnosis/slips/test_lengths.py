"""A number that is a length in backward is not exchanged for one with which its tensors would not fit in memory."""

import pytest

from gradcli import engine as torch
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips.search import SlipSearch
from gradcli.errors import OverrunError
from tests.programs.planted import subject_of

LENGTHS = []


def weights(n):
    LENGTHS.extend([n] if isinstance(n, int) else [])
    return torch.arange(n, dtype=torch.float64)[:, None] * torch.ones(1, n, dtype=torch.float64)


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x) @ weights(x.shape[1])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[1]
        return (g @ weights(n).t()) * torch.cos(x)


class Unchained(Weighted):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[1]
        return (g @ weights(n).t()) * torch.sin(x)


class Scaled(Weighted):
    """Where the number is only a factor, its size is tried."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x) / x.numel()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[1]
        return g * torch.cos(x) / n


@pytest.mark.parametrize(("target", "is_shown"), [(Weighted, False), (Unchained, True)])
def test_no_edit_makes_a_length_as_large_as_a_number_of_entries(target, is_shown):
    LENGTHS.clear()
    search = SlipSearch(Facts(subject_of(target, (60, 64)), 0))
    search.slip_for(0)
    assert search.shows(0) is is_shown
    assert max(LENGTHS) < 60 * 64


def test_a_number_of_entries_is_tried_where_nothing_is_as_long():
    slip = SlipSearch(Facts(subject_of(Scaled, (60, 64)), 0)).slip_for(0)
    assert slip is not None


def test_a_search_that_was_ended_by_its_time_does_not_start_anew(monkeypatch):
    searched = []

    def ended(*_):
        searched.append(True)
        raise OverrunError("too late", phase="naming")

    search = SlipSearch(Facts(subject_of(Unchained, (6, 4)), 0))
    with monkeypatch.context() as patched:
        patched.setattr(SlipSearch, "_search", ended)
        with pytest.raises(OverrunError):
            search.slip_for(0, short=True)
        assert search.slip_for(0) is None
    assert searched == [True]
    assert SlipSearch(Facts(subject_of(Unchained, (6, 4)), 0)).slip_for(0) is not None
