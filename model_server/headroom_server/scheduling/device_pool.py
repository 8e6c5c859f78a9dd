"""The devices of one queue: when each is free, and when a position in the queue is served. Pure.

The device that is free first takes the first batch, so no device idles while a request waits. One
queue per device cannot guarantee that, even with join-the-shortest-queue: at 90 % load two devices
on one queue (M/M/2) give a mean wait of 4.3 service times, two queues with half the load each (2 x
M/M/1) give 9, and the shorter of two is in between. Source: Kleinrock, Queueing Systems I (1975),
3.5; Harchol-Balter, Performance Modeling and Design of Computer Systems (2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify, heapreplace

from headroom_server.scheduling.device_time import DeviceTime


class DevicePool:
    """Devices numbered from 0, without lost ones."""

    def __init__(self, count: int) -> None:
        """Raise ValueError for a count below 1."""
        if count < 1:
            raise ValueError(f"the number of devices must be at least 1; got {count}")
        self._all = [DeviceTime() for _ in range(count)]
        self._live = list(range(count))
        self._only = self._all[0] if count == 1 else None
        """The only device, or the only one left: the usual case, without loops."""
        self._ended_s = float("-inf")

    def assign(self, device: int, now_s: float, seconds: float) -> None:
        """Record that a batch leaves the queue for a device."""
        self._all[device].assign(now_s, seconds)

    def complete(
        self, device: int, began_s: float, seconds: float, *, arrived_s: float | None
    ) -> None:
        """Record the end of a batch; `arrived_s`: its first request's arrival, if any."""
        one = self._all[device]
        one.complete(began_s, seconds, waited=arrived_s is not None and arrived_s < one.ended_s)
        self._ended_s = one.ended_s

    def remove(self, device: int) -> None:
        """Remove a lost device, unless it is the last one."""
        if len(self._live) > 1:
            self._live.remove(device)
        if len(self._live) == 1:
            self._only = self._all[self._live[0]]

    @property
    def ended_s(self) -> float:
        """End of the batch that was reported last."""
        return self._ended_s

    @property
    def gap_s(self) -> float:
        """Mean time between two batches of a device, if the second one was already waiting."""
        if self._only is not None:
            return self._only.gap_s
        return sum(self._all[one].gap_s for one in self._live) / len(self._live)

    @property
    def idle(self) -> bool:
        """Whether a device has no batch."""
        if self._only is not None:
            return self._only.idle
        return any(self._all[one].idle for one in self._live)

    def next(self, now_s: float) -> int:
        """Return the device that is free first."""
        if self._only is not None:
            return self._live[0]
        return min(self._live, key=lambda one: self._all[one].free_in_s(now_s))

    def starts_in_s(self, now_s: float, batches: float = 0.0, seconds: float = 0.0) -> float:
        """Return the seconds until the batch after this many, with this total time, starts."""
        if self._only is not None:
            return self._only.free_in_s(now_s) + seconds
        free_s = [self._all[one].free_in_s(now_s) for one in self._live]
        if batches <= 0.0 or seconds <= 0.0:
            return min(free_s)
        whole = math.floor(batches)
        begins_s = nth_start_s(free_s, whole, seconds / batches)
        if batches == whole:
            return begins_s
        later_s = nth_start_s(free_s, whole + 1, seconds / batches)
        return begins_s + (batches - whole) * (later_s - begins_s)


def nth_start_s(free_s: Sequence[float], ahead: int, batch_s: float) -> float:
    """Return the start of a batch after `ahead` others of `batch_s` each.

    Devices free in 2 and 7 ms start batches of 10 ms at 2, 7, 12, 17 ... ms. The number of steps
    per device does not depend on `ahead`: all batches that certainly start before a common moment
    are skipped.
    """
    devices = list(free_s)
    surely = ahead - len(devices)
    if surely > 0:
        level_s = _level_s(devices, surely * batch_s)
        for at, one_s in enumerate(devices):
            skipped = max(0, math.floor((level_s - one_s) / batch_s))
            devices[at] += skipped * batch_s
            ahead -= skipped
    heapify(devices)
    for _ in range(ahead):
        heapreplace(devices, devices[0] + batch_s)
    return devices[0]


def _level_s(free_s: Sequence[float], work_s: float) -> float:
    """Return when the devices have done this much work, divided arbitrarily finely."""
    total_s = work_s
    by_time = sorted(free_s)
    for count, one_s in enumerate(by_time, start=1):
        total_s += one_s
        level_s = total_s / count
        if count == len(by_time) or level_s <= by_time[count]:
            break
    return level_s
