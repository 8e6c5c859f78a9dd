"""Drive a candidate against the API, and run the leader's work while it leads.

Losing the lease does not end the process: a restart by the kubelet would wait for its back-off.
The state of a term ends with it, because nothing of it can write any more (`guard`), and the next
term begins from the cluster. A lease that expired, for example while the API was away, and that no
other candidate took continues as the same term, with its state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from headroom.controller.leadership.candidate import Candidate
from headroom.controller.leadership.election_ports import Clocks, Note, Observer
from headroom.controller.leadership.leader_task import LeaderTask
from headroom.controller.leadership.lease_store import Leases, LeaseStore
from headroom.controller.leadership.record import micro_time
from headroom.errors import ClusterError, Conflict, Unavailable

_log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class Term:
    """One period in which this process leads, and no other process in between."""

    def __init__(self, election: Election, number: int) -> None:
        self._election = election
        self.number = number

    def remaining_s(self) -> float:
        """Return the longest time of a write from now; 0 if the term is over or the lease old."""
        return self._election.remaining_s(self.number)


Work = Callable[[Term], Awaitable[None]]
"""Work of a leader, until cancelled."""


class Election:
    """Competes for one Lease."""

    def __init__(
        self,
        *,
        leases: Leases,
        clocks: Clocks,
        namespace: str,
        name: str,
        candidate: Candidate,
        observer: Observer,
        note: Note | None = None,
    ) -> None:
        self._note = note
        self._lease = LeaseStore(leases=leases, namespace=namespace, name=name)
        self._clocks = clocks
        self._candidate = candidate
        self._observer = observer
        self._term = Term(self, 0)
        self._task = LeaderTask()
        self._said = ""
        self.complaint = ""
        """Reason why the Lease could not be read or written when that was last tried."""

    @property
    def leading(self) -> bool:
        """Whether this process may write now."""
        return self._candidate.remaining_s(self._clocks.elapsed_s()) > 0.0

    @property
    def holder(self) -> str:
        """The holder of the lease, as far as known; empty if there is none."""
        return self._candidate.seen.holder if self._candidate.seen else ""

    def remaining_s(self, term: int) -> float:
        """Return the longest time of a write of that term."""
        if term != self._candidate.term:
            return 0.0
        return self._candidate.remaining_s(self._clocks.elapsed_s())

    async def run(self, work: Work) -> None:
        """Compete for the lease until cancelled, and release it then.

        Raises what the work raises, which ends the candidacy.
        """
        try:
            while True:
                await self._attempt()
                await self._follow_up(work)
                await self._pause()
        finally:
            await self._task.end()
            await self._release()

    async def _attempt(self) -> None:
        """Read where that is needed, then take the lease or renew it where that is possible."""
        try:
            if self._candidate.must_read:
                record = await self._answered(self._lease.read())
                self._candidate = self._candidate.with_record(record, self._clocks.elapsed_s())
                if self._note is not None:
                    self._note.text = "" if record is None else record.note
            await self._claim()
        except ClusterError as error:
            self._candidate = self._candidate.with_unknown_outcome()
            if not isinstance(error, Conflict):  # another candidate was faster, which is no error
                self._complain(str(error))
        else:
            self.complaint = ""

    async def _answered(self, request: Awaitable[Answer]) -> Answer:
        """Wait for the answer to one request: a leader no longer than it leads.

        A deadline each: with one for both, answers of half a deadline would make no leader.
        """
        left_s = self._candidate.times.request_s
        if self.leading:
            left_s = min(left_s, self._candidate.remaining_s(self._clocks.elapsed_s()))
        try:
            async with asyncio.timeout(left_s):
                return await request
        except TimeoutError:
            raise Unavailable(f"no answer in {left_s:.1f} s") from None

    async def _claim(self) -> None:
        asked_s = self._clocks.elapsed_s()
        claimed = self._candidate.claim(asked_s, micro_time(self._clocks.now_s()))
        if claimed is None:
            return
        if self._note is not None:
            claimed = replace(claimed, note=self._note.written() or claimed.note)
        stored = await self._answered(self._lease.write(claimed))
        self._candidate = self._candidate.with_written(stored, asked_s, self._clocks.elapsed_s())

    async def _follow_up(self, work: Work) -> None:
        """Begin and end the work as leadership comes and goes."""
        if self._term.number != self._candidate.term:
            await self._task.end()
            self._term = Term(self, self._candidate.term)
        if self.leading and not self._task.running:
            self._task.begin(work(self._term))
        elif not self.leading:
            await self._task.end()
        self._tell()

    async def _pause(self) -> None:
        """Wait until something is to be done: to renew, to end, or that the work has failed."""
        now_s = self._clocks.elapsed_s()
        pause_s = self._candidate.pause_s(now_s)
        if self._task.running:
            pause_s = min(pause_s, self._candidate.remaining_s(now_s))
        await self._task.wait(pause_s)

    async def _release(self) -> None:
        """Release the lease, so that another process need not wait for its expiry. Best effort."""
        self._candidate = self._candidate.stepped_down()
        self._tell()
        try:
            async with asyncio.timeout(self._candidate.times.retry_s):
                if not self._candidate.current and self.holder == self._candidate.identity:
                    self._candidate = self._candidate.with_record(
                        await self._lease.read(), self._clocks.elapsed_s()
                    )
                released = self._candidate.release_record(micro_time(self._clocks.now_s()))
                if released is not None:
                    await self._lease.write(released)
                    _log.info("released the lease %s", self._lease)
        except (ClusterError, TimeoutError) as error:
            _log.warning("the lease could not be released: %s", str(error) or "no answer in time")

    def _tell(self) -> None:
        """Show the leadership, and log its changes."""
        seen = self._candidate.seen
        self._observer.led(self.leading, seen.transitions if seen else 0)
        if self.leading:
            said = "leading"
        elif self._candidate.holds:
            said = "the lease was not renewed in time: decisions stop"
        else:
            said = f"following {self.holder}" if self.holder else "waiting: there is no leader"
        if said != self._said:
            self._said = said
            _log.info("%s (lease %s)", said, self._lease)

    def _complain(self, complaint: str) -> None:
        if complaint != self.complaint:
            self.complaint = complaint
            _log.warning("lease %s: %s", self._lease, complaint)
