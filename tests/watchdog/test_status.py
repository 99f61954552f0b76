"""The status of a case as another process reads it, also while it is being written."""

import math
import os
import subprocess
import sys
import time

import pytest

from gradcli.watchdog.status import Status, read_status

WRITER = """
import sys
from gradcli.watchdog.status import Status
status = Status(int(sys.argv[1]))
print("ready", flush=True)
while True:
    for call in range(1, 1000):
        status.began(call, 1e9 + call, 0.5, asked=False)
        status.ended()
    status.clear()
"""


@pytest.fixture
def descriptor(tmp_path):
    number = os.open(tmp_path / "memory", os.O_RDWR | os.O_CREAT)
    yield number
    os.close(number)


def test_what_was_written_is_read(descriptor):
    assert read_status(None) == read_status(descriptor)
    status = Status(descriptor)
    assert (read_status(descriptor).call, read_status(descriptor).due) == (0, math.inf)
    status.entered("sweep", optional=True)
    status.began(7, 12.5, 0.25, asked=False)
    read = read_status(descriptor)
    assert (read.call, read.due, read.forward_seconds, read.asked) == (7, 12.5, 0.25, False)
    assert (read.phase, read.optional) == ("sweep", {"sweep"})
    status.clear()
    assert read_status(descriptor) == read_status(None)


def test_a_call_that_is_being_written_is_never_read_in_part(descriptor):
    """A time of zero, read in the middle of a write, would end a worker that does not hang."""
    command = [sys.executable, "-c", WRITER, str(descriptor)]
    with subprocess.Popen(command, pass_fds=[descriptor], stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout.readline() == b"ready\n"
            states, until = set(), time.monotonic() + 0.5
            while time.monotonic() < until:
                read = read_status(descriptor)
                states.add((read.due, read.call, read.forward_seconds, read.asked))
        finally:
            writer.kill()
    assert len(states) > 2
    assert states <= {(math.inf, 0, 0.0, True)} | {(1e9 + call, call, 0.5, False) for call in range(1, 1000)}
