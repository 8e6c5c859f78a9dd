"""Appends lines to a file from a separate thread, so that the caller never waits for a disk."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

MOST_BEHIND = 10_000
"""Maximum texts in the queue: some megabytes, if the disk hangs."""
END_WITHIN_S = 2.0
_LONGEST_LINE_BYTES = 65_536


class RecordingFile:
    """A file of lines that starts with `header` and never exceeds `most_bytes`.

    An existing file with the same header is continued; an incomplete last line is removed. Use as a
    context manager.

    Raises:
        OSError: on entry, if the file cannot be written or has another header.
    """

    def __init__(self, path: Path, *, header: str, most_bytes: int) -> None:
        self._path = path
        self._header = header.encode()
        self._most_bytes = most_bytes
        self._bytes = 0
        self._failure = ""
        self._behind: queue.Queue[str | None] = queue.Queue(MOST_BEHIND)

    def __enter__(self) -> Self:
        """Open the file and start the writer."""
        try:
            self._path.touch()
            with self._path.open("r+b") as begun:
                self._bytes = self._continued(begun)
            file = self._path.open("ab")
        except OSError as error:
            if error.errno is None:
                raise
            rule = "the recording's file must be writable"
            raise OSError(f"{self._path}: {error.strerror}; {rule}") from None
        self._thread = threading.Thread(
            target=self._write, args=(file,), name="recording", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the queued texts, within END_WITHIN_S."""
        with suppress(queue.Full):
            self._behind.put_nowait(None)
            self._thread.join(END_WITHIN_S)

    def append(self, text: str) -> None:
        """Queue whole lines.

        Raises OSError if the file is full or an earlier text could not be written.
        """
        size = len(text.encode())
        if self._failure:
            raise OSError(f"{self._path}: {self._failure}")
        if self._bytes + size > self._most_bytes:
            raise OSError(
                f"{self._path}: the file has reached its limit of {self._most_bytes} bytes"
            )
        try:
            self._behind.put_nowait(text)
        except queue.Full:
            raise OSError(
                f"{self._path}: the disk is slow, {MOST_BEHIND} texts are queued"
            ) from None
        self._bytes += size

    def _continued(self, file: BinaryIO) -> int:
        """Truncate the file to its last complete line; return its size."""
        begin = file.read(len(self._header))
        if begin == self._header[: len(begin)] and len(begin) < len(self._header):
            file.seek(0)  # empty, or truncated within the header
            file.write(self._header)
            file.flush()
        elif begin != self._header:
            raise OSError(
                f"{self._path}: begins with {begin[:40]!r}, which no recording of this version "
                "does; name another file"
            )
        size = file.seek(0, 2)
        start = file.seek(max(0, size - _LONGEST_LINE_BYTES))
        end = start + file.read().rfind(b"\n") + 1
        file.truncate(end)
        return file.seek(end)

    def _write(self, file: BinaryIO) -> None:
        try:
            while (text := self._behind.get()) is not None:
                file.write(text.encode())
                file.flush()
        except OSError as error:
            self._failure = error.strerror or str(error)
        with suppress(OSError):  # reported already: the buffer could not be written
            file.close()
