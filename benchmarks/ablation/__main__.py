"""Run as `python -m benchmarks.ablation`; `run.py` says with which arguments."""

from benchmarks.ablation.run import main

main()
