"""Reports the events of a watch of pods within each namespace's share of the event loop.

A tenant can make a pod of 1.5 MB, whose event takes 40 to 140 ms to parse, and change it many times
a second. An event that does not fit its namespace's share waits, one per pod, the newest. Their
bytes are bounded; an event without room is dropped, and its pod is read again in its turn. So the
last state of each pod is reported, and no older one after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from headroom.adapters.api_server.kept_parts import kept_parts
from headroom.adapters.watches.watch_lines import Head, head_of, version_of
from headroom.errors import AnswerTooLarge, ClusterError, Unavailable
from headroom.event_loop_shares import EventLoopShares
from headroom.fair_share import FairShare
from headroom.fair_slots import FairSlots

_log = logging.getLogger(__name__)

Object = dict[str, Any]
OnEvent = Callable[[str, Object], None]
"""Takes ADDED, MODIFIED or DELETED, and the pod; of several changes, maybe the last only."""
Read = Callable[[str, str], Awaitable[bytes]]
"""Reads the list of the pod of a namespace and a name."""

WAITING_BYTES = 8 << 20
"""Room for the events of all watches; a namespace has at most half of it."""
AGAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchShares:
    """Shares of namespaces in the bounds of all watches of a process."""

    loop: EventLoopShares = field(default_factory=EventLoopShares)
    waiting: FairShare = field(default_factory=lambda: FairShare(WAITING_BYTES))
    reads: FairSlots = field(default_factory=lambda: FairSlots(1))
    """Pods that are read again, 4 MB each at most."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    head: Head
    line: bytes
    """Empty if there was no room for it: the pod is read again."""


class WaitingEvents:
    """The events of one watch. Use within a block of `group`, and close it at its end."""

    def __init__(
        self, shares: WatchShares, read: Read, on_event: OnEvent, group: asyncio.TaskGroup
    ) -> None:
        self._shares = shares
        self._read = read
        self._on_event = on_event
        self._group = group
        self._waiting: dict[str, dict[str, _Waiting]] = {}
        """Waiting events by namespace and UID, in the order in which they began to wait."""
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._versions: dict[str, int] = {}
        """Versions of pods that were read again and may be newer than their last event, by UID."""

    def take(self, line: bytes, *, whole: bool = True) -> None:
        """Report an event now, or later. Raises Unavailable if the watch must restart."""
        head = head_of(line)
        if head is None:
            if whole:
                self._report(line)
        elif head.kind == "DELETED" or not whole:
            self._gone(head, line if whole else b"")
        elif not head.is_before(self._versions.get(head.uid, 0)):
            self._versions.pop(head.uid, None)
            if self._reported_now(head, line):
                self._pop(head)
            else:
                self._wait(head, line)

    def close(self) -> None:
        """Discard the waiting events: a list follows."""
        for task in self._turns.values():
            task.cancel()
        for one in [one for queue in self._waiting.values() for one in queue.values()]:
            self._pop(one.head)

    def _gone(self, head: Head, line: bytes) -> None:
        """Report that a pod is gone, or too large to be read: a list leaves it out too."""
        self._versions.pop(head.uid, None)
        self._pop(head)
        if not line or not self._reported_now(head, line):
            self._on_event("DELETED", {"metadata": head.identity()})

    def _reported_now(self, head: Head, line: bytes) -> bool:
        work = partial(self._report, line)
        return self._shares.loop.run_now(head.namespace, len(line), work)

    def _report(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            kind, pod = event["type"], event["object"]
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise Unavailable("an event is not JSON") from error
        if kind == "ERROR":
            raise Unavailable(f"the watch ended: {pod.get('message', pod)}")
        if kind in ("ADDED", "MODIFIED", "DELETED"):
            self._on_event(kind, kept_parts("Pod", pod))

    def _wait(self, head: Head, line: bytes) -> None:
        queue = self._waiting.setdefault(head.namespace, {})
        room = self._shares.waiting
        if (before := queue.get(head.uid)) is not None:
            room.give_back(head.namespace, len(before.line))
        if not room.fits(head.namespace, len(line)):
            line = b""
        room.take(head.namespace, len(line))
        queue[head.uid] = _Waiting(head, line)
        if head.namespace not in self._turns:
            turns = self._group.create_task(self._take_turns(head.namespace))
            self._turns[head.namespace] = turns

    def _pop(self, head: Head) -> None:
        gone = self._waiting.get(head.namespace, {}).pop(head.uid, None)
        if gone is not None:
            self._shares.waiting.give_back(head.namespace, len(gone.line))

    async def _take_turns(self, namespace: str) -> None:
        """Report a namespace's waiting events; a newer one of the same pod replaces the older."""
        queue = self._waiting[namespace]
        while queue:
            first = next(iter(queue.values()))
            if first.line:
                work = partial(self._report_waiting, first.head)
                await self._shares.loop.run(namespace, len(first.line), work)
            else:
                await self._read_again(first)
        del self._turns[namespace], self._waiting[namespace]

    def _report_waiting(self, head: Head) -> None:
        newest = self._waiting[head.namespace].get(head.uid)
        if newest is not None and newest.line:
            self._pop(head)
            self._report(newest.line)

    async def _read_again(self, dropped: _Waiting) -> None:
        head = dropped.head
        try:
            async with self._shares.reads.slot(head.namespace):
                body = await self._read(head.namespace, head.name)
                work = partial(self._report_read, dropped, body)
                await self._shares.loop.run(head.namespace, len(body), work)
        except AnswerTooLarge:
            self._gone(head, b"")
        except ClusterError as error:
            _log.debug("a pod whose event was dropped could not be read: %s", error)
            await asyncio.sleep(AGAIN_S)

    def _report_read(self, dropped: _Waiting, body: bytes) -> None:
        """Report a pod as it was read, unless it was deleted or reported meanwhile."""
        head = dropped.head
        newest = self._waiting[head.namespace].get(head.uid)
        if newest is None or newest.line:
            return
        try:
            pods = orjson.loads(body)["items"] or []
            found = next((one for one in pods if one["metadata"]["uid"] == head.uid), None)
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise Unavailable("the answer is not a list of pods") from error
        if newest is dropped:  # else it has changed again
            self._pop(head)
        if found is not None:  # else the watch reports that it is gone
            self._versions[head.uid] = version_of(found["metadata"].get("resourceVersion"))
            self._on_event("MODIFIED", kept_parts("Pod", found))
