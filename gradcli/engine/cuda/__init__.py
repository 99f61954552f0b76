"""The namespace `cuda`, which says that there is none."""

from gradcli.engine.cuda import amp as amp


def is_available() -> bool:
    """Tell whether a GPU can be used: never."""
    return False


def device_count() -> int:
    """Return the number of GPUs: none."""
    return 0


def manual_seed_all(seed: int) -> None:
    """Seed no GPU."""
    del seed


manual_seed = manual_seed_all
