"""A load generator for figures per request: one thread, epoll and a timer, little CPU of its own.

Open loop: a request is sent when it is due, whatever happened to earlier ones, and its latency
counts from then. Closed loop: a fixed number of requests is always in flight. Reads a `Plan` from
standard input, warms its connections, prints `ready`, waits for a line, and prints `Answers`. An
asyncio loop rounds timers to a millisecond and costs three times as much per request.
"""

from __future__ import annotations

import errno
import gc
import heapq
import random
import select
import socket
import sys
import time
from collections import OrderedDict

from serverbench.arrivals import kinds, poisson
from serverbench.exchange import OK, Answers, Plan, Status
from serverbench.http_answers import Head, head_of, is_complete
from serverbench.sockets import Connection, Timer

RECEIVE_BYTES = 65_536
SWEEP_S = 0.1
LEAD_S = 0.05


class Loader:
    """Sends what a plan says, and notes how each request ended."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.due_s = [] if plan.in_flight else poisson(plan.segments, plan.seed)
        self._shares = [kind.share for kind in plan.kinds]
        self.kinds = kinds(self._shares, len(self.due_s), plan.seed)
        self._ports = plan.clients or (plan.port,)
        self._chance = random.Random(f"{plan.seed} clients")
        self._requests = [kind.request.encode("latin-1") for kind in plan.kinds]
        self._expected = [kind.expected.encode("latin-1") for kind in plan.kinds]
        self._abandoned_after_s = [kind.abandoned_after_s for kind in plan.kinds]
        self._epoll = select.epoll()
        self._timer = Timer()
        self._epoll.register(self._timer.fd, select.EPOLLIN | select.EPOLLET)
        self._by_fd: dict[int, Connection] = {}
        self._free: list[list[Connection]] = [[] for _ in self._ports]
        self._under_way: OrderedDict[int, Connection] = OrderedDict()
        self._leaving: list[tuple[float, int]] = []
        self._began_s = 0.0
        self.connections = self.retried = 0
        self.took_s: list[float | None] = [None] * len(self.due_s)
        self.statuses: list[int] = [Status.LOST] * len(self.due_s)
        self.late_s: list[float] = []

    def warm(self) -> None:
        """Open connections and ask once on each; what it takes does not count."""
        due_s, self.due_s = self.due_s, [0.0] * self._plan.warm_connections
        took_s, statuses, drawn, self.kinds = self.took_s, self.statuses, self.kinds, []
        self.took_s, self.statuses = [None] * len(self.due_s), [0] * len(self.due_s)
        self.kinds = [0] * len(self.due_s)
        self.run()
        self.due_s, self.took_s, self.statuses, self.kinds = due_s, took_s, statuses, drawn
        self.late_s, self.retried = [], 0

    def run(self) -> None:
        """Send everything, and wait for every end."""
        self._began_s = time.monotonic() + LEAD_S
        if self._plan.in_flight and not self.due_s:
            self._run_closed()
            return
        number, count = 0, len(self.due_s)
        while number < count or self._under_way:
            now_s = time.monotonic()
            while number < count and self._began_s + self.due_s[number] <= now_s:
                self._send(number)
                number += 1
                now_s = time.monotonic()
            self._sweep(now_s)
            wake_s = now_s + SWEEP_S
            if number < count:
                wake_s = min(wake_s, self._began_s + self.due_s[number])
            if self._leaving:
                wake_s = min(wake_s, self._leaving[0][0])
            self._poll_until(wake_s)

    def _run_closed(self) -> None:
        until_s = self._began_s + sum(segment.seconds for segment in self._plan.segments)
        while (now_s := time.monotonic()) < until_s or self._under_way:
            while now_s < until_s and len(self._under_way) < self._plan.in_flight:
                self.due_s.append(now_s - self._began_s)
                self.kinds.append(self._chance.choices(range(len(self._shares)), self._shares)[0])
                self.took_s.append(None)
                self.statuses.append(Status.LOST)
                self._send(len(self.due_s) - 1)
            self._sweep(now_s)
            self._poll_until(now_s + SWEEP_S)

    def _poll_until(self, wake_s: float) -> None:
        self._timer.set(wake_s)
        for fd, events in self._epoll.poll():
            if fd != self._timer.fd:
                self._attend(self._by_fd.get(fd), events)

    def close(self) -> None:
        """Close every connection that was kept."""
        for connection in list(self._by_fd.values()):
            connection.socket.close()
        self._epoll.close()
        self._timer.close()

    def _send(self, number: int) -> None:
        self.late_s.append(time.monotonic() - self._began_s - self.due_s[number])
        after_s = self._abandoned_after_s[self.kinds[number]]
        if after_s is not None:
            heapq.heappush(self._leaving, (time.monotonic() + after_s, number))
        client = self._chance.randrange(len(self._ports)) if len(self._ports) > 1 else 0
        self._ask(number, self._free[client].pop() if self._free[client] else self._open(client))

    def _open(self, client: int) -> Connection | None:
        if len(self._by_fd) >= self._plan.max_connections:
            return None
        connection = Connection(self._ports[client], client)
        self.connections += 1
        self._by_fd[connection.socket.fileno()] = connection
        return connection

    def _ask(self, number: int, connection: Connection | None) -> None:
        if connection is None:
            return  # no connection left: lost
        connection.number, connection.received, connection.head = number, b"", None
        connection.unsent = self._requests[self.kinds[number]]
        self._under_way[number] = connection
        if connection.reused:
            self._push(connection)
            return
        connection.watched = select.EPOLLIN | select.EPOLLOUT
        self._epoll.register(connection.socket.fileno(), connection.watched)

    def _push(self, connection: Connection) -> None:
        try:
            sent = connection.socket.send(connection.unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._ended(connection)
            return
        connection.unsent = connection.unsent[sent:]
        wanted = select.EPOLLIN | (select.EPOLLOUT if connection.unsent else 0)
        if wanted != connection.watched:
            connection.watched = wanted
            self._epoll.modify(connection.socket.fileno(), wanted)

    def _attend(self, connection: Connection | None, events: int) -> None:
        if connection is None:
            return  # closed earlier in this round
        if events & select.EPOLLOUT and connection.unsent:
            if connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self._ended(connection)
                return
            self._push(connection)
        if events & ~select.EPOLLOUT and connection.socket.fileno() >= 0:
            self._receive(connection)

    def _receive(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        connection.received += data
        if connection.number is None:
            self._close(connection)  # closed, or spoke, between two requests
            return
        head = connection.head = connection.head or head_of(connection.received)
        if head is not None and is_complete(connection.received, head, ended=not data):
            self._answered(connection, connection.number, head)
        elif not data:
            self._ended(connection)

    def _answered(self, connection: Connection, number: int, head: Head) -> None:
        del self._under_way[number]
        self.took_s[number] = time.monotonic() - self._began_s - self.due_s[number]
        right = self._expected[self.kinds[number]] in connection.received
        self.statuses[number] = Status.WRONG if head.status == OK and not right else head.status
        if head.closes or head.length is None or connection.unsent:
            self._close(connection)
            return
        connection.number, connection.reused = None, True
        self._free[connection.client].append(connection)

    def _ended(self, connection: Connection) -> None:
        """The connection is over before an answer: once more, where it had been an old one."""
        number, again = connection.number, connection.reused and not connection.received
        self._close(connection)
        if number is not None:
            self._under_way.pop(number, None)
            if again:
                self.retried += 1
                self._ask(number, self._open(connection.client))

    def _sweep(self, now_s: float) -> None:
        while self._leaving and self._leaving[0][0] <= now_s:
            self._leave(heapq.heappop(self._leaving)[1], Status.ABANDONED)
        latest_s = now_s - self._began_s - self._plan.timeout_s
        while self._under_way and self.due_s[first := next(iter(self._under_way))] < latest_s:
            self._leave(first, Status.TIMED_OUT)

    def _leave(self, number: int, status: Status) -> None:
        connection = self._under_way.pop(number, None)
        if connection is not None:
            self.statuses[number] = status
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        if (fd := connection.socket.fileno()) < 0:
            return
        del self._by_fd[fd]
        free = self._free[connection.client]
        if connection.number is None and connection in free:
            free.remove(connection)
        connection.socket.close()


def main() -> int:
    """One plan."""
    plan = Plan.model_validate_json(sys.stdin.readline())
    loader = Loader(plan)
    loader.warm()
    print("ready", flush=True)
    if not sys.stdin.readline():
        return errno.ECANCELED
    gc.collect()
    gc.freeze()
    gc.disable()
    before_s = time.process_time()
    loader.run()
    late_s = sorted(loader.late_s) or [0.0]
    answers = Answers(
        due_s=tuple(loader.due_s),
        took_s=tuple(loader.took_s),
        statuses=tuple(loader.statuses),
        kinds=tuple(loader.kinds),
        cpu_s=time.process_time() - before_s,
        late_p50_s=late_s[len(late_s) // 2],
        late_p99_s=late_s[int(0.99 * (len(late_s) - 1))],
        retried=loader.retried,
        connections=loader.connections,
        late_s=tuple(loader.late_s),
    )
    print(answers.model_dump_json(), flush=True)
    loader.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
