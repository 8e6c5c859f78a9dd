"""The port through which a model receives the events of its devices."""

from __future__ import annotations

from typing import Protocol

from headroom_server.device.batches import ExecutedBatch
from headroom_server.device.startup import Warm
from headroom_server.device.warming import SelfTest
from headroom_server.lifecycle import Phase
from headroom_server.runtime.batching.pending import PendingRequest


class Owner(Protocol):
    """Receives the events of all devices together, on the event loop's thread."""

    def on_phase(self, phase: Phase, at_s: float | None = None) -> None:
        """The last device has entered a startup phase."""

    def on_self_test(self, result: SelfTest) -> None:
        """A self-test has ended, successfully or not."""

    def on_warm(self, warm: Warm) -> None:
        """All devices are ready."""

    def on_executed(self, done: ExecutedBatch[PendingRequest], device: int) -> None:
        """A batch has ended."""

    def on_lost(self, message: str) -> None:
        """Nothing can be executed any more."""
