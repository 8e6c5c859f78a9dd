"""The engine interface: load a model on a device, execute a batch in three steps."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from headroom_server.datatypes import DATATYPES
from headroom_server.signature import Signature
from headroom_server.typed_arrays import Numbers


class Work(NamedTuple):
    """The numbers of one request: `items` rows of every declared input, flat."""

    items: int
    inputs: Mapping[str, Numbers]
    length: int = 0
    """Size of the model's dynamic dimension, the same for all items; 0 if it has none."""
    featured: bool = False
    """Whether the inputs are the model's features, which it computed from the declared ones."""

    @property
    def size(self) -> int:
        """Bytes of the inputs."""
        return sum([len(numbers) * numbers.itemsize for numbers in self.inputs.values()])


class Staged(NamedTuple):
    """A batch ready for the device, padded to one length (0: no dynamic dimension)."""

    batch: Sequence[Work]
    length: int
    prepared: Any = None
    """The engine's own data: collected, padded, copy begun."""
    preprocess_s: float = 0.0
    """The part of the staging time spent in the model's own code."""


class StageTimes(NamedTuple):
    """Time per stage of a batch."""

    preprocess_s: float
    """The model's own code before execution."""
    stage_s: float
    """Collecting, padding, beginning to copy."""
    execute_s: float
    postprocess_s: float
    """The model's own code after execution, and splitting the rows by request."""

    @property
    def total_s(self) -> float:
        """The sum of all stages."""
        return sum(self)


class DeviceLostError(Exception):
    """The device will not respond again in this process; only a restart helps."""


class OutOfMemoryError(Exception):
    """The device has no memory for this batch; a smaller one may fit."""


class LoadError(Exception):
    """The model cannot be loaded as configured; the message says what to change."""


class Engine(Protocol):
    """One device.

    `load`, `compile` and `execute` are always called on the same thread. `stage` and `finish` may
    run concurrently with them, each on one thread at a time.
    """

    name: str
    device: str
    """Name of the hardware for people: `emulated`, `cpu`, or the GPU's name."""
    emulated: bool
    """Whether it only simulates the time of a device."""
    compiles: bool
    """Whether the model requests compilation. Known once `load` has returned."""

    def load(self) -> Signature:
        """Load the model to the device and return its signature.

        Raises:
            LoadError: it can never work as configured.
        """

    def compile(self) -> str:
        """Make the next execution of every shape compile it; return how, or why not."""

    def stage(self, batch: Sequence[Work], length: int, ahead: Staged | None = None) -> Staged:
        """Collect and pad a batch to `length`, and begin to copy it. All of this is host work.

        `ahead` was staged for an earlier guess of this batch. It will not be executed and may be
        reused in part or as a whole. Any exception fails the batch.
        """

    def execute(self, staged: Staged) -> Any:
        """Compute until the results are in host memory. Any exception fails the batch.

        Raises:
            DeviceLostError: nothing can be executed any more.
            OutOfMemoryError: a smaller batch may succeed.
        """

    def finish(self, staged: Staged, result: Any) -> Sequence[Mapping[str, Numbers]]:
        """Return the outputs of each request, in order, flat and cut to the request's own length.

        `staged` is not used again. Any exception fails the batch.
        """

    def unload(self) -> None:
        """Release what `load` took; nothing is executed any more."""


def check_outputs(
    signature: Signature, batch: Sequence[Work], outputs: Sequence[Mapping[str, Numbers]]
) -> None:
    """Check an engine's outputs, so that no request gets missing or another's numbers.

    Raises:
        ValueError: outputs, tensors or numbers are missing, too many, or of another type.
    """
    if len(outputs) != len(batch):
        raise ValueError(f"the engine must return {len(batch)} answers; got {len(outputs)}")
    for spec in signature.outputs:
        name, elements = spec.name, spec.elements
        typecode, strings = DATATYPES[spec.datatype].typecode, spec.is_strings
        for work, answer in zip(batch, outputs, strict=True):
            numbers, wanted = answer.get(name), work.items * elements
            if spec.dynamic:
                wanted *= work.length
            if not isinstance(numbers, array) or numbers.typecode != typecode:
                raise ValueError(
                    f"output {name} must be an array of {typecode!r}; got {numbers!r:.100}"
                )
            found = spec.count(numbers) if strings else len(numbers)
            if found != wanted:
                raise ValueError(f"output {name} must have {wanted} elements; got {found}")
