"""Ports of the warm-up; adapters fit by structure, tests use fakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headroom.controller.ports import Manifest
from headroom.profiles.open_inference import RepeatedText

OnList = Callable[[list[Manifest]], None]
OnEvent = Callable[[str, Manifest], None]


class Response(Protocol):
    """Answer of a server."""

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def text(self) -> str:
        """The body, or its beginning."""
        ...

    @property
    def seconds(self) -> float:
        """From sending to the last byte."""
        ...


class Requester(Protocol):
    """Sends requests to pods."""

    async def get(self, url: str, deadline_s: float) -> Response:
        """GET; raise `headroom.errors.RequestFailed` where nothing is answered in time."""
        ...

    async def post(
        self, url: str, body: str | RepeatedText, content_type: str, deadline_s: float
    ) -> Response:
        """POST; raise `headroom.errors.RequestFailed` where nothing is answered in time."""
        ...


class PodWatch(Protocol):
    """Pods as they are and as they change."""

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        """Report the existing pods, then changes, until cancelled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupDeps:
    """Dependencies of a controller that warms pods."""

    requester: Requester
    watches: Sequence[PodWatch] = ()
    """Watches of pods with the warm-up label; events only make the next tick earlier."""
