"""Executors of Dask: a cluster that runs already, or a local one for the run."""

import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager

from gradcli.errors import MissingExtraError, UsageError

_CONNECT_SECONDS = "10s"
_LOGGING_OF_PROCESSES = "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED"


@contextmanager
def dask_executor(address: str | None, size: int) -> Iterator[Executor]:
    """The executor of the cluster at `address`; without one, of a cluster of `size` processes on this machine.

    Raises:
        MissingExtraError: Dask is not installed.
        UsageError: nothing answers at the address.
    """
    try:
        from dask import config
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingExtraError("--executor dask needs Dask: pip install 'gradcli[dask]'") from error
    with ExitStack() as opened:
        if address is None:
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            # Its processes set up their logging when they import distributed, before they get this configuration.
            opened.enter_context(config.set({_LOGGING_OF_PROCESSES: "critical"}))
            cluster = opened.enter_context(
                LocalCluster(n_workers=size, threads_per_worker=1, processes=True, dashboard_address=None)
            )
            client = opened.enter_context(Client(cluster))
        else:
            try:
                client = opened.enter_context(Client(address, timeout=_CONNECT_SECONDS))
            except (OSError, ValueError, TypeError) as error:
                raise UsageError(f"--executor dask:{address}: no Dask scheduler answers there: {error}") from error
        yield opened.enter_context(client.get_executor(pure=False, retries=0))
