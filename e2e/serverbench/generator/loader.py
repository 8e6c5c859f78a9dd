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

from serverbench.generator.arrivals import kinds, poisson
from serverbench.generator.exchange import OK, Plan, Status
from serverbench.generator.http_answers import Head, head_of, is_complete
from serverbench.generator.request_log import RequestLog
from serverbench.generator.sockets import Connection, ConnectionPool, Timer

RECEIVE_BYTES = 65_536
SWEEP_S = 0.1
LEAD_S = 0.05


class Loader:
    """Sends the requests of a plan, and logs how each ended."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._shares = [kind.share for kind in plan.kinds]
        due_s = [] if plan.in_flight else poisson(plan.segments, plan.seed)
        self.log = RequestLog(due_s, kinds(self._shares, len(due_s), plan.seed))
        self._clients = max(1, len(plan.clients))
        self._chance = random.Random(f"{plan.seed} clients")
        self._requests = [kind.request.encode("latin-1") for kind in plan.kinds]
        self._expected = [kind.expected.encode("latin-1") for kind in plan.kinds]
        self._abandoned_after_s = [kind.abandoned_after_s for kind in plan.kinds]
        self._epoll = select.epoll()
        self._timer = Timer()
        self._epoll.register(self._timer.fd, select.EPOLLIN | select.EPOLLET)
        self._pool = ConnectionPool(plan.clients or (plan.port,), plan.max_connections)
        self._under_way: OrderedDict[int, Connection] = OrderedDict()
        self._leaving: list[tuple[float, int]] = []
        self._began_s = 0.0

    @property
    def connections(self) -> int:
        """Number of opened connections."""
        return self._pool.opened

    def warm(self) -> None:
        """Open connections and ask once on each; what it takes does not count."""
        log, count = self.log, self._plan.warm_connections
        self.log = RequestLog([0.0] * count, [0] * count)
        self._run_open()
        self.log = log

    def run(self) -> None:
        """Send everything, and wait for every end."""
        if self._plan.in_flight:
            self._run_closed()
        else:
            self._run_open()

    def _run_open(self) -> None:
        self._began_s = time.monotonic() + LEAD_S
        number, count = 0, len(self.log.due_s)
        while number < count or self._under_way:
            now_s = time.monotonic()
            while number < count and self._began_s + self.log.due_s[number] <= now_s:
                self._send(number)
                number += 1
                now_s = time.monotonic()
            self._sweep(now_s)
            wake_s = now_s + SWEEP_S
            if number < count:
                wake_s = min(wake_s, self._began_s + self.log.due_s[number])
            if self._leaving:
                wake_s = min(wake_s, self._leaving[0][0])
            self._poll_until(wake_s)

    def _run_closed(self) -> None:
        self._began_s = time.monotonic() + LEAD_S
        until_s = self._began_s + sum(segment.seconds for segment in self._plan.segments)
        while (now_s := time.monotonic()) < until_s or self._under_way:
            while now_s < until_s and len(self._under_way) < self._plan.in_flight:
                kind = self._chance.choices(range(len(self._shares)), self._shares)[0]
                self._send(self.log.add(now_s - self._began_s, kind))
            self._sweep(now_s)
            self._poll_until(now_s + SWEEP_S)

    def _poll_until(self, wake_s: float) -> None:
        self._timer.set(wake_s)
        for fd, events in self._epoll.poll():
            if fd != self._timer.fd:
                self._attend(self._pool.by_fd.get(fd), events)

    def close(self) -> None:
        """Close every connection that was kept."""
        self._pool.close()
        self._epoll.close()
        self._timer.close()

    def _send(self, number: int) -> None:
        self.log.late_s.append(time.monotonic() - self._began_s - self.log.due_s[number])
        after_s = self._abandoned_after_s[self.log.kinds[number]]
        if after_s is not None:
            heapq.heappush(self._leaving, (time.monotonic() + after_s, number))
        client = self._chance.randrange(self._clients) if self._clients > 1 else 0
        self._ask(number, self._pool.take(client))

    def _ask(self, number: int, connection: Connection | None) -> None:
        if connection is None:
            return  # no connection left: lost
        connection.number, connection.received, connection.head = number, b"", None
        connection.unsent = self._requests[self.log.kinds[number]]
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
            self._pool.drop(connection)  # closed, or spoke, between two requests
            return
        head = connection.head = connection.head or head_of(connection.received)
        if head is not None and is_complete(connection.received, head, ended=not data):
            self._answered(connection, connection.number, head)
        elif not data:
            self._ended(connection)

    def _answered(self, connection: Connection, number: int, head: Head) -> None:
        del self._under_way[number]
        self.log.took_s[number] = time.monotonic() - self._began_s - self.log.due_s[number]
        right = self._expected[self.log.kinds[number]] in connection.received
        self.log.statuses[number] = Status.WRONG if head.status == OK and not right else head.status
        if head.closes or head.length is None or connection.unsent:
            self._pool.drop(connection)
            return
        self._pool.keep(connection)

    def _ended(self, connection: Connection) -> None:
        """Close a connection that ended before an answer; ask again if it had been kept."""
        number, again = connection.number, connection.reused and not connection.received
        self._pool.drop(connection)
        if number is not None:
            self._under_way.pop(number, None)
            if again:
                self.log.retried += 1
                self._ask(number, self._pool.open(connection.client))

    def _sweep(self, now_s: float) -> None:
        while self._leaving and self._leaving[0][0] <= now_s:
            self._leave(heapq.heappop(self._leaving)[1], Status.ABANDONED)
        latest_s = now_s - self._began_s - self._plan.timeout_s
        while self._under_way and self.log.due_s[first := next(iter(self._under_way))] < latest_s:
            self._leave(first, Status.TIMED_OUT)

    def _leave(self, number: int, status: Status) -> None:
        connection = self._under_way.pop(number, None)
        if connection is not None:
            self.log.statuses[number] = status
            self._pool.drop(connection)


def main() -> int:
    """Run the plan that standard input has."""
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
    answers = loader.log.answers(
        cpu_s=time.process_time() - before_s, connections=loader.connections
    )
    print(answers.model_dump_json(), flush=True)
    loader.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
