"""A terminal narrower than a table: all its rows are broken before the same columns, and commands are left whole."""

from dataclasses import replace

import pytest

from gradcli.reporters.console import _in_columns, console_case
from tests.reporters.results import FAILED, PASSED

ROWS = ["    x[i]      returned   numeric", "    [0]    0.283854073   0.567708146 ± 7e-12", "    [1]     1.27111568"]


def test_rows_that_fit_are_left_as_they_are() -> None:
    assert _in_columns(ROWS, 44) == ROWS


def test_all_rows_break_before_the_same_column_and_empty_cells_take_no_line() -> None:
    assert _in_columns(ROWS, 40) == [
        "    x[i]      returned",
        "      numeric",
        "    [0]    0.283854073",
        "      0.567708146 ± 7e-12",
        "    [1]     1.27111568",
    ]


def test_a_cell_that_is_wider_than_the_terminal_stays_whole() -> None:
    assert _in_columns(["  a  bbbbbbbbbbbb", "  c  d"], 8) == ["  a", "    bbbbbbbbbbbb", "  c", "    d"]


@pytest.mark.parametrize("width", [30, 40, 60, 100])
@pytest.mark.parametrize("result", [PASSED, FAILED])
def test_tables_fit_and_nothing_is_lost(result: object, width: int) -> None:
    shown = console_case(result, verbose=True, width=width).plain  # type: ignore[arg-type]
    whole = console_case(result, verbose=True, width=None).plain  # type: ignore[arg-type]
    assert shown.split() == whole.split()
    rows = [line for line in shown.split("\n") if line.startswith(("    [", "      ")) and "│" not in line]
    assert all(len(line) <= width for line in rows)


def test_a_command_is_left_whole() -> None:
    result = replace(FAILED, replay=".gradcli/failures/a-very-long-name-of-a-file.json")
    lines = console_case(result, width=40).plain.split("\n")
    assert any(line.endswith("gradcli replay .gradcli/failures/a-very-long-name-of-a-file.json") for line in lines)
