"""What routing needs from outside; adapters fit by structure, tests use fakes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from headroom.controller.ports import Manifest
from headroom.gateway import Snapshot
from headroom.gateway.activator_messages import Served

OnList = Callable[[list[Manifest]], None]
OnEvent = Callable[[str, Manifest], None]


class Watch(Protocol):
    """Pods as they are and as they change."""

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        """Report the existing objects, then changes, until cancelled."""
        ...


WatchPods = Callable[[str, str], Watch]
"""Watches the pods in a namespace that a label selector selects."""


class Publisher(Protocol):
    """Publishes configuration to the gateways."""

    def publish(self, snapshot: Snapshot) -> None:
        """Publish this until the next call."""
        ...

    def withdraw(self) -> None:
        """Stop publishing: another process decides."""
        ...


class Probe(Protocol):
    """Tries whether a gateway accepts connections."""

    async def is_open(self, address: str, port: int) -> bool:
        """Return whether a process listens there, within a fraction of a second."""
        ...


class Activators(Protocol):
    """Hold requests while a service has no warm replica."""

    def publish(self, services: Iterable[Served], kept: Collection[str] = ()) -> None:
        """Publish this until the next call.

        Other services stay as they are if `kept` has their namespace or key.
        """
        ...

    def withdraw(self) -> None:
        """Stop publishing: another process decides."""
        ...

    def accepting(self, port: int) -> tuple[str, ...]:
        """Return the addresses of those that take requests at a service's port."""
        ...

    def arrived(self, key: str) -> int:
        """Count the requests that came to them for a service, since some moment."""
        ...

    def held(self, key: str) -> int:
        """Count the requests that are held for a service, by `namespace/name`."""
        ...
