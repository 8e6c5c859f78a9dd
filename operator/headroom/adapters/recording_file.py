"""Lines appended to a file, from a thread of its own: whoever appends never waits for a disk."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

MOST_BEHIND = 10_000
"""Texts that wait to be written at most: some megabytes, where a disk hangs."""
END_WITHIN_S = 2.0
_LONGEST_LINE_BYTES = 65_536


class RecordingFile:
    """A file of lines that begins with `header` and never grows beyond `most_bytes`.

    A file that begins so already is continued; of a last line that was cut, nothing is kept. Use as
    a context manager.

    Raises:
        OSError: on entry, where the file cannot be written, or is something else.
    """

    def __init__(self, path: Path, *, header: str, most_bytes: int) -> None:
        self._path = path
        self._header = header.encode()
        self._most_bytes = most_bytes
        self._bytes = 0
        self._failure = ""
        self._behind: queue.Queue[str | None] = queue.Queue(MOST_BEHIND)

    def __enter__(self) -> Self:
        """Open the file, and begin to write."""
        try:
            self._path.touch()
            with self._path.open("r+b") as begun:
                self._bytes = self._continued(begun)
            file = self._path.open("ab")
        except OSError as error:
            if error.errno is None:
                raise
            rule = "a recording needs a file that can be written"
            raise OSError(f"{self._path}: {error.strerror}; {rule}") from None
        self._thread = threading.Thread(
            target=self._write, args=(file,), name="journal", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write what is still to be written, for as long as END_WITHIN_S."""
        with suppress(queue.Full):
            self._behind.put_nowait(None)
            self._thread.join(END_WITHIN_S)

    def append(self, text: str) -> None:
        """Add whole lines, soon.

        Raises OSError where the file is full, or an earlier text could not be written.
        """
        size = len(text.encode())
        if self._failure:
            raise OSError(f"{self._path}: {self._failure}")
        if self._bytes + size > self._most_bytes:
            raise OSError(f"{self._path}: it has all of its {self._most_bytes} bytes")
        try:
            self._behind.put_nowait(text)
        except queue.Full:
            raise OSError(f"{self._path}: the disk is {MOST_BEHIND} texts behind") from None
        self._bytes += size

    def _continued(self, file: BinaryIO) -> int:
        """Bring the file to the end of its last whole line; return its size."""
        begin = file.read(len(self._header))
        if begin == self._header[: len(begin)] and len(begin) < len(self._header):
            file.seek(0)  # empty, or cut within the header
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
        with suppress(OSError):  # said already: what the buffer holds could not be written
            file.close()
