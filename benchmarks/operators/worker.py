"""What a worker process does: the rows of one operator after another.

A module of its own, because a process that is started anew does not import a package's `__main__`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

import torch

from benchmarks.operators.checkers import Row, is_visible, row_of
from benchmarks.operators.database import Sample, operators, samples
from benchmarks.operators.functions import PLANTS, Plant


def work(channel: Connection, options: argparse.Namespace) -> None:
    """Say None when ready, then answer indices of operators with their rows, then None."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dtype = getattr(torch, options.dtype)
    entries = operators(dtype, in_place=options.in_place)
    row_of(samples(entries[0], dtype, 1)[0], "wrapped", 2, dtype, plant=None, peers=True)
    channel.send(None)
    while (index := channel.recv()) is not None:
        try:
            for row in _rows(index, entries[index], dtype, options):
                channel.send(row)
        except Exception as error:
            # Whatever the database raises becomes a row.
            channel.send(f"{type(error).__name__}: {error}")
            return
        channel.send(None)


def _rows(index: int, entry: Any, dtype: torch.dtype, options: argparse.Namespace) -> Iterator[Row]:
    for sample in samples(entry, dtype, options.samples, in_place=options.in_place):
        order = options.order if sample.twice else 1
        for number, way in enumerate(options.ways):
            if options.what == "right":
                yield row_of(sample, way, order, dtype, plant=None, peers=number == 0 or way == "wrapped")
                continue
            for plant in _plants(index, sample, order, options.plants):
                yield row_of(sample, way, plant.order, dtype, plant=plant, peers=number == 0)


def _plants(index: int, sample: Sample, order: int, count: int) -> list[Plant]:
    """The first `count` planted errors that change this sample's gradient, beginning with another for each operator."""
    turned = [*PLANTS[index % len(PLANTS) :], *PLANTS[: index % len(PLANTS)]]
    return list(islice((plant for plant in turned if plant.order <= order and is_visible(sample, plant)), count))
