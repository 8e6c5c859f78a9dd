"""What a device can do, as the server sees it: load a model, and execute a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from headroom_server.tensors import Numbers, Signature


class Work(NamedTuple):
    """The numbers of one request: `items` rows of every declared input, flat."""

    items: int
    inputs: Mapping[str, Numbers]


class DeviceLostError(Exception):
    """The device will not answer again in this process; only a restart helps."""


class LoadError(Exception):
    """The model cannot be loaded as it is configured; the message says what to change."""


class Engine(Protocol):
    """One device. Every method is called on one thread, the same for the whole life."""

    name: str
    device: str
    """What executes, for people: `emulated`, `cpu`, or the GPU's name."""
    emulated: bool
    """Whether it only spends the time of a device."""

    def load(self) -> Signature:
        """Bring the model to the device and say what it takes and gives.

        Raises:
            LoadError: where that can never work as configured.
        """

    def execute(self, batch: Sequence[Work]) -> Sequence[Mapping[str, Numbers]]:
        """Outputs of each request, in order, each flat.

        May raise anything: the batch fails. DeviceLostError is final.
        """
