"""What holds for every test of this folder."""

import pytest


@pytest.fixture(autouse=True)
def _uncorrected(uncorrected: None) -> None:
    """No test here reads how a mistake is corrected."""
