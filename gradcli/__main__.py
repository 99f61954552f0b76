"""The way in: `gradcli` and `python -m gradcli`."""

import sys

from gradcli._version import __version__


def main() -> int:
    """Run the command line and return its exit code; the version alone is told without importing anything."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"gradcli {__version__}\n")
        return 0
    try:
        from gradcli.cli.app import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("gradcli: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
