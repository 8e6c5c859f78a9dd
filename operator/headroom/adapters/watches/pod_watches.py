"""Watches the pods of several namespaces as one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from headroom.adapters.watches.pod_watch import OnList, PodWatch
from headroom.adapters.watches.waiting_events import Object, OnEvent

FIRST_LISTS_S = 10.0
"""Time for the first lists of several namespaces: one that cannot be read delays no other longer.
"""


class PodWatches:
    """The watches of the namespaces."""

    def __init__(self, watches: Sequence[PodWatch], first_lists_s: float = FIRST_LISTS_S) -> None:
        self._watches = tuple(watches)
        self._first_lists_s = first_lists_s
        self._unlisted = {number: watch.namespace for number, watch in enumerate(self._watches)}

    def unlisted(self) -> frozenset[str]:
        """Return the namespaces whose pods are not known yet."""
        return frozenset(self._unlisted.values())

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        """Watch until cancelled. The first list is that of all namespaces that can be read."""
        known: dict[int, dict[str, Object]] = {}
        begun = False

        def begin() -> None:
            nonlocal begun
            begun = True
            on_list([pod for each in known.values() for pod in each.values()])

        def listed(number: int, pods: list[Object]) -> None:
            known[number] = {_uid(pod): pod for pod in pods}
            self._unlisted.pop(number, None)
            if begun or len(known) == len(self._watches):
                begin()

        def changed(number: int, kind: str, pod: Object) -> None:
            if kind == "DELETED":
                known[number].pop(_uid(pod), None)
            else:
                known[number][_uid(pod)] = pod
            if begun:
                on_event(kind, pod)

        async with asyncio.TaskGroup() as group:
            for number, watch in enumerate(self._watches):
                group.create_task(watch.run(partial(listed, number), partial(changed, number)))
            await asyncio.sleep(self._first_lists_s)
            if not begun:
                begin()


def _uid(pod: Object) -> str:
    return str(pod["metadata"].get("uid", ""))
