"""What a device can do, as the server sees it: load a model, and execute a batch."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from headroom_server.tensors import DATATYPES, Numbers, Signature


class Work(NamedTuple):
    """The numbers of one request: `items` rows of every declared input, flat."""

    items: int
    inputs: Mapping[str, Numbers]
    length: int = 0
    """Extent along the model's dynamic dimension, the same for all items; 0 where it has none."""


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

    def unload(self) -> None:
        """Give back what `load` took; nothing is executed any more."""


def check_outputs(
    signature: Signature, batch: Sequence[Work], outputs: Sequence[Mapping[str, Numbers]]
) -> None:
    """Hold an engine to its word, so that no request is answered with another's numbers or none.

    Raises:
        ValueError: where answers, tensors or numbers are missing, too many, or of another type.
    """
    if len(outputs) != len(batch):
        raise ValueError(f"the engine gave {len(outputs)} answers to {len(batch)} requests")
    for work, answer in zip(batch, outputs, strict=True):
        for spec in signature.outputs:
            numbers, wanted = answer.get(spec.name), work.items * spec.elements_at(work.length)
            typecode = DATATYPES[spec.datatype].typecode
            if not isinstance(numbers, array) or numbers.typecode != typecode:
                raise ValueError(
                    f"output {spec.name}: an array of {typecode!r}; got {numbers!r:.100}"
                )
            if len(numbers) != wanted:
                raise ValueError(f"output {spec.name}: {wanted} numbers; got {len(numbers)}")
