"""The load generator's connections, with one request each at a time, and its timer."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Sequence

from serverbench.generator.http_answers import Head

CLOCK_MONOTONIC, TIMER_ABSOLUTE, PR_SET_TIMERSLACK = 1, 1, 29


class Timer:
    """A file that can be read from an instant on: exact to microseconds, where epoll has 1 ms."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        self.fd: int = self._libc.timerfd_create(CLOCK_MONOTONIC, 0)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")

    def close(self) -> None:
        """Close the file."""
        os.close(self.fd)

    def set(self, at_s: float) -> None:
        """Go off at a time of `time.monotonic`; one that has passed goes off at once."""
        seconds, rest = divmod(at_s, 1.0)
        value = struct.pack("qqqq", 0, 0, int(seconds), max(1, int(rest * 1e9)))
        self._libc.timerfd_settime(self.fd, TIMER_ABSOLUTE, value, None)


class Connection:
    """One socket, with at most one request on it."""

    __slots__ = ("client", "head", "number", "received", "reused", "socket", "unsent", "watched")

    def __init__(self, port: int, client: int = 0) -> None:
        self.client = client
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(("127.0.0.1", port))
        self.received = b""
        self.unsent = b""
        self.head: Head | None = None
        self.number: int | None = None
        self.reused = False
        self.watched = 0
        """Events that epoll reports."""


class ConnectionPool:
    """Connections of clients; those without a request are kept by the client that opened them."""

    def __init__(self, ports: Sequence[int], most: int) -> None:
        self._ports, self._most = ports, most
        self._idle: list[list[Connection]] = [[] for _ in ports]
        self.by_fd: dict[int, Connection] = {}
        self.opened = 0

    def take(self, client: int) -> Connection | None:
        """Return the idle connection used last, else a new one."""
        return self._idle[client].pop() if self._idle[client] else self.open(client)

    def open(self, client: int) -> Connection | None:
        """Open a connection; None if there are as many as allowed."""
        if len(self.by_fd) >= self._most:
            return None
        connection = Connection(self._ports[client], client)
        self.opened += 1
        self.by_fd[connection.socket.fileno()] = connection
        return connection

    def keep(self, connection: Connection) -> None:
        """Keep an answered connection for a later request."""
        connection.number, connection.reused = None, True
        self._idle[connection.client].append(connection)

    def drop(self, connection: Connection) -> None:
        """Close a connection; nothing happens if it is closed already."""
        if (fd := connection.socket.fileno()) < 0:
            return
        del self.by_fd[fd]
        idle = self._idle[connection.client]
        if connection.number is None and connection in idle:
            idle.remove(connection)
        connection.socket.close()

    def close(self) -> None:
        """Close every connection."""
        for connection in list(self.by_fd.values()):
            connection.socket.close()
