"""In the device process: starts the fronts, starts others in place of those that die, ends them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Sequence

from headroom_server.fronts import wire
from headroom_server.fronts.channel import ARENA_BYTES, Channel
from headroom_server.fronts.client_connection import Bounds
from headroom_server.fronts.counter import Counter
from headroom_server.fronts.frames import Kind, frame
from headroom_server.fronts.front import Opening
from headroom_server.fronts.register import Register
from headroom_server.fronts.visits import Visits

log = logging.getLogger("headroom_server")

LAST_S = 1.0
"""From a front's end to that of its channel."""
LOOK_PERIOD_S = 0.05
"""How late a front may know that a model came or went."""
FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S = 0.1, 10.0
STEADY_S = 10.0
"""A front that has lived for so long is started again at once."""


class Fronts:
    """One process per listener. The listeners stay open here, too.

    So nobody who connects is turned away while a front is being replaced.
    """

    def __init__(
        self, listeners: Sequence[socket.socket], register: Register, visits: Visits, bounds: Bounds
    ) -> None:
        self._listeners = listeners
        self._register = register
        self._visits = visits
        self._bounds = bounds
        self._counters: dict[int, Counter] = {}
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._leaving = False
        self._refusing = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin, on the running loop."""
        self._register.look()
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._keep(index)) for index in range(len(self._listeners))]
        self._looking = loop.create_task(self._look())

    def refuse_connections(self) -> None:
        """Listen no more."""
        self._refusing = True
        for listener in self._listeners:
            listener.close()
        self._broadcast(frame(Kind.REFUSE))

    def leave(self) -> None:
        """Have all fronts answer what they owe, and end."""
        self._leaving = True
        self._broadcast(frame(Kind.LEAVE))

    async def ended(self, within_s: float) -> None:
        """Wait until all have, and what they sent last is here; cut those that take longer."""
        _, slow = await asyncio.wait(self._tasks, timeout=max(0.0, within_s))
        if slow:
            log.warning("%d fronts were cut: clients sent or read too slowly", len(slow))
            self._kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                while any(counter.open for counter in self._counters.values()):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """End those that are left."""
        self._leaving = True
        self._looking.cancel()
        self._kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(self._looking, *self._tasks, return_exceptions=True)

    def _kill(self) -> None:
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def tell(self) -> None:
        """Say at once how the server is."""
        for counter in self._counters.values():
            counter.tell()

    def _broadcast(self, frame: bytes) -> None:
        for counter in self._counters.values():
            if counter.open:
                counter.channel.send(frame)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_PERIOD_S)
            if self._register.look():
                self._broadcast(frame(Kind.CATALOGUE, self._register.told))
            self.tell()

    async def _keep(self, index: int) -> None:
        """Have a front at this listener until told otherwise."""
        loop, back_off_s = asyncio.get_running_loop(), FIRST_BACK_OFF_S
        while not self._leaving and not self._refusing:
            began_s = loop.time()
            try:
                process = await self._begun(index)
            except Exception:  # the last resort, which logs it
                log.exception("front %d could not be started", index)
            else:
                code = await process.wait()
                if self._leaving:
                    return
                log.error("front %d (pid %d) ended with %d", index, process.pid, code)
            if loop.time() - began_s > STEADY_S:
                back_off_s = FIRST_BACK_OFF_S
            await asyncio.sleep(back_off_s)
            back_off_s = min(2 * back_off_s, LONGEST_BACK_OFF_S)

    async def _begun(self, index: int) -> asyncio.subprocess.Process:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        visitors, their_visitors = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        out, incoming = _memory(), _memory()
        listener = self._listeners[index]
        opening = Opening(
            wire.VERSION,
            listener.fileno(),
            theirs.fileno(),
            their_visitors.fileno(),
            incoming,
            out,
            self._bounds,
        )
        with theirs, their_visitors:
            process = await _started(opening)
        self._processes[index] = process
        counter = Counter(self._register, self._visits.begin)
        counter.channel = Channel(counter, out, incoming, visitors)
        await asyncio.get_running_loop().create_connection(lambda: counter.channel, sock=ours)
        self._counters[index] = counter
        counter.channel.send(frame(Kind.CATALOGUE, self._register.told))
        if self._refusing:
            counter.channel.send(frame(Kind.REFUSE))
        if self._leaving:
            counter.channel.send(frame(Kind.LEAVE))
        log.info("front %d has pid %d", index, process.pid)
        return process


async def _started(opening: Opening) -> asyncio.subprocess.Process:
    inherited = opening[1:-1]
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "headroom_server.fronts",
            opening.dumps(),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=inherited,
            start_new_session=True,  # what a terminal sends is for the device process
        )
    except BaseException:
        os.close(opening.out)
        os.close(opening.incoming)
        raise


def _memory() -> int:
    """A descriptor of a memory without a name: it ends with the last process that has it.

    `/dev/shm`, where named ones live, is 64 MiB in containers.
    """
    descriptor = os.memfd_create("headroom-front")
    os.ftruncate(descriptor, ARENA_BYTES)
    return descriptor
