"""Run as `python -m benchmarks.hostile`; `run.py` says with which arguments."""

import sys

from benchmarks.hostile.run import main

sys.exit(main(sys.argv[1:]))
