"""Messages between two processes of one run: pickled values in frames on a stream socket."""

import io
import pickle
import socket
import struct
from collections.abc import Iterator
from typing import Any, final

from gradcli.garbage import not_collecting

_HEADER = struct.Struct("!4sQ")
_MARK = b"gcli"
_LARGEST = 1 << 32
_CHUNK = 1 << 16
_TRUSTED = ("gradcli.", "numpy.", "pathlib.")
_BUILT_IN = ("complex", "set", "frozenset", "bytearray", "slice", "range")


class GarbledError(Exception):
    """The bytes received are no message: something else was written to the socket."""


@final
class Channel:
    """One end of the connection to another process.

    `send` and `receive` block; `arrived` reads what is there and yields the messages that are complete.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._buffer = bytearray()

    def fileno(self) -> int:
        """The socket's descriptor, for a selector."""
        return self._end.fileno()

    def send(self, message: object) -> None:
        """Send `message`.

        Raises:
            OSError: the other process has ended.
        """
        self._end.sendall(framed(message))

    def receive(self) -> Any:
        """The next message; nothing that was sent after it is read, as descriptors may come with that.

        Raises:
            EOFError: the other process closed its end.
            GarbledError: what was received is no message.
        """
        while True:
            found, message = self._next()
            if found:
                return message
            self._fill(self._missing())

    def arrived(self) -> Iterator[Any]:
        """The messages that are complete after one read, those before a garbled one too; raises as `receive`."""
        self._fill()
        while (found := self._next())[0]:
            yield found[1]

    def close(self) -> None:
        """Close this end."""
        self._end.close()

    def _missing(self) -> int:
        """Bytes that are left of the header or, once that is there, of the message; at most a chunk."""
        if len(self._buffer) < _HEADER.size:
            return _HEADER.size - len(self._buffer)
        _, length = _HEADER.unpack_from(self._buffer)
        return min(_HEADER.size + int(length) - len(self._buffer), _CHUNK)

    def _fill(self, most: int = _CHUNK) -> None:
        try:
            chunk = self._end.recv(most)
        except ConnectionError:
            chunk = b""
        if not chunk:
            raise EOFError
        self._buffer += chunk

    def _next(self) -> tuple[bool, Any]:
        if len(self._buffer) < _HEADER.size:
            return False, None
        mark, length = _HEADER.unpack_from(self._buffer)
        if mark != _MARK or length > _LARGEST:
            raise GarbledError
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return False, None
        body = bytes(self._buffer[_HEADER.size : end])
        del self._buffer[:end]
        try:
            with not_collecting():
                return True, _Reader(io.BytesIO(body)).load()
        except Exception as error:
            raise GarbledError(str(error)) from error


def framed(message: object) -> bytes:
    """The bytes of one message."""
    with not_collecting():
        body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(_MARK, len(body)) + body


class _Reader(pickle.Unpickler):
    """Reads values of gradcli and of the libraries it stands on; a class of the user's is refused, not imported."""

    def find_class(self, module: str, name: str) -> Any:
        if not f"{module}.".startswith(_TRUSTED) and (module != "builtins" or name not in _BUILT_IN):
            raise pickle.UnpicklingError(
                f"a worker process cannot send a {module}.{name} to the main process: run with --in-process"
            )
        return super().find_class(module, name)
