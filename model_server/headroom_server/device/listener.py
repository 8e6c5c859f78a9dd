"""Interface of the receiver of a device thread's events."""

from __future__ import annotations

from typing import Protocol, TypeVar

from headroom_server.device.batches import ExecutedBatch
from headroom_server.device.startup import Warm
from headroom_server.device.warming import SelfTest
from headroom_server.lifecycle import Phase

T = TypeVar("T")


class Listener(Protocol[T]):
    """Receives events one after the other, on its own thread."""

    def on_phase(self, phase: Phase, at_s: float) -> None:
        """A startup phase has begun."""

    def on_self_test(self, result: SelfTest) -> None:
        """A self-test has ended, successfully or not."""

    def on_warm(self, warm: Warm) -> None:
        """The device is ready."""

    def on_executed(self, done: ExecutedBatch[T]) -> None:
        """A batch has ended."""

    def on_suspected(self, suspected: bool) -> None:
        """The engine fails every batch, or no longer does."""

    def on_lost(self, message: str) -> None:
        """The device is lost for good."""
