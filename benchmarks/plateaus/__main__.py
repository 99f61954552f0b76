"""Run as `python -m benchmarks.plateaus`; `run.py` says with which arguments."""

from benchmarks.plateaus.run import main

main()
