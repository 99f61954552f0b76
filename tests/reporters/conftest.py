"""The command line in a process of its own, as in the tests of the commands."""

from tests.cli.conftest import folder, gradcli

__all__ = ["folder", "gradcli"]
