"""The table kind by member: what is said, and whether it is as it should be.

Run: python -m benchmarks.kinds [KIND]... [--name TEXT] [-v]
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.kinds.catalogue import MEMBERS
from benchmarks.kinds.run import ask, line


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--name", default="")
    parser.add_argument("-v", action="store_true", dest="verbose")
    options = parser.parse_args()
    asked = wrong = 0
    for member in MEMBERS:
        if (options.kinds and member.kind not in options.kinds) or options.name not in member.name:
            continue
        for answer in ask(member):
            print(line(answer), flush=True)
            asked += 1
            if not answer.as_said or answer.seconds > 20:
                wrong += 1
                print("\n".join(f"        {row}" for row in answer.detail.splitlines()[:40]))
            if not answer.as_said or options.verbose:
                for note in answer.notes:
                    print("        note:", note)
    print(f"{asked} asked, {wrong} not as said")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
