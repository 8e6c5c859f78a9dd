"""What a device can do, as the server sees it: load a model, and execute a batch in three steps."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from headroom_server.tensors import DATATYPES, Numbers, Signature


class Work(NamedTuple):
    """The numbers of one request: `items` rows of every declared input, flat."""

    items: int
    inputs: Mapping[str, Numbers]
    length: int = 0
    """Extent along the model's dynamic dimension, the same for all items; 0 where it has none."""


class Staged(NamedTuple):
    """A batch that is ready for the device, all of it padded to one length (0: there is none)."""

    batch: Sequence[Work]
    length: int
    prepared: Any = None
    """The engine's own: what it has collected, padded and begun to copy."""
    preprocess_s: float = 0.0
    """Of the time that staging took, what the model's own code did."""


class StageTimes(NamedTuple):
    """Where the time of a batch went."""

    preprocess_s: float
    """In the model's own code, before."""
    stage_s: float
    """Collecting, padding, beginning to copy."""
    execute_s: float
    postprocess_s: float
    """The model's own code, after, and dealing out the rows."""

    @property
    def total_s(self) -> float:
        """All of them, one after the other."""
        return sum(self)


class DeviceLostError(Exception):
    """The device will not answer again in this process; only a restart helps."""


class OutOfMemoryError(Exception):
    """The device has no room for this batch; a smaller one may fit."""


class LoadError(Exception):
    """The model cannot be loaded as it is configured; the message says what to change."""


class Engine(Protocol):
    """One device.

    `load`, `compile` and `execute` are called on one thread, the same for the whole life. `stage`
    and `finish` may run beside them, each on one thread at a time.
    """

    name: str
    device: str
    """What executes, for people: `emulated`, `cpu`, or the GPU's name."""
    emulated: bool
    """Whether it only spends the time of a device."""
    compiles: bool
    """Whether the model asks to be compiled. Known once `load` has returned."""

    def load(self) -> Signature:
        """Bring the model to the device and say what it takes and gives.

        Raises:
            LoadError: where that can never work as configured.
        """

    def compile(self) -> str:
        """Have the next execution of every shape compile it; say how, or why not."""

    def stage(self, batch: Sequence[Work], length: int, ahead: Staged | None = None) -> Staged:
        """Collect and pad a batch to `length`, and begin to copy it. All of this is host work.

        `ahead` was staged for what the batch was going to be, is executed no more, and may be used
        again in part or as a whole. May raise anything: the batch fails.
        """

    def execute(self, staged: Staged) -> Any:
        """Compute, until the results are in the host's memory. May raise anything: the batch fails.

        Raises:
            DeviceLostError: nothing will be executed any more.
            OutOfMemoryError: a smaller batch may succeed.
        """

    def finish(self, staged: Staged, result: Any) -> Sequence[Mapping[str, Numbers]]:
        """Outputs of each request, in order, each flat and cut back to the request's own length.

        `staged` is not used again. May raise anything: the batch fails.
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
    for spec in signature.outputs:
        name, elements = spec.name, spec.elements
        typecode, strings = DATATYPES[spec.datatype].typecode, spec.is_strings
        for work, answer in zip(batch, outputs, strict=True):
            numbers, wanted = answer.get(name), work.items * elements
            if spec.dynamic:
                wanted *= work.length
            if not isinstance(numbers, array) or numbers.typecode != typecode:
                raise ValueError(f"output {name}: an array of {typecode!r}; got {numbers!r:.100}")
            found = spec.count(numbers) if strings else len(numbers)
            if found != wanted:
                raise ValueError(f"output {name}: {wanted} elements; got {found}")
