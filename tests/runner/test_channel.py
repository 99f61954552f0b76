"""Messages between two processes of a run."""

import socket

import pytest

from gradcli.runner.workers.channel import Channel, GarbledError, framed


def test_messages_before_garbage_in_one_read_are_received() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(framed("begun") + framed(2) + b"junk" * 9)
        messages = Channel(ours).arrived()
        assert [next(messages), next(messages)] == ["begun", 2]
        with pytest.raises(GarbledError):
            next(messages)


def test_a_message_that_is_not_complete_is_kept_for_the_next_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel, whole = Channel(ours), framed("begun")
        theirs.sendall(framed(1) + whole[:5])
        assert list(channel.arrived()) == [1]
        theirs.sendall(whole[5:])
        assert list(channel.arrived()) == ["begun"]


def test_the_end_of_the_other_process_is_told() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        with pytest.raises(EOFError):
            list(Channel(ours).arrived())
