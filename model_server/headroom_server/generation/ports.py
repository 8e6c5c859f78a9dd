"""PURE. What generation needs from the world: an executor of iterations, or a whole engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headroom_server.generation.values import (
    Delivery,
    GenerationLimits,
    GenerationRequest,
    Iteration,
    IterationResult,
    SequenceView,
)


class Executor(Protocol):
    """A model on a device that computes iterations which a scheduler decided.

    All methods are called on one thread, the device thread.
    """

    device: str
    """Name of the hardware for people: `emulated`, `cpu`, or the GPU's name."""

    def load(self) -> GenerationLimits:
        """Load weights, reserve the memory of keys and values, return what fits.

        Raises:
            LoadError: it can never work as configured.
        """

    def execute(self, iteration: Iteration) -> IterationResult:
        """Compute an iteration and return when its tokens are in host memory.

        Raises:
            DeviceLostError: nothing can be executed any more.
            OutOfMemoryError: a smaller iteration may succeed.
        """

    def draft(self, sequences: Sequence[SequenceView], count: int) -> Sequence[Sequence[int]]:
        """Propose up to `count` next tokens per sequence; none without a draft model."""

    def forget(self, key: int) -> None:
        """Drop what is kept for a request (random state, counts of tokens)."""

    def unload(self) -> None:
        """Release what `load` took."""


Receive = Callable[[Delivery], None]
"""Called on the event loop, in order, once per iteration of a request; the last has `finish`."""


class GenerationEngine(Protocol):
    """A whole engine behind the front: ours (a scheduler and an executor) or a foreign one.

    Methods are called on the event loop and return at once.
    """

    @property
    def limits(self) -> GenerationLimits:
        """What the loaded model admits; known once it is warm."""

    def submit(self, request: GenerationRequest, receive: Receive) -> None:
        """Accept a request.

        Raises:
            RefusedError: it is refused now (429 with the seconds to wait, or 503 while starting or
                draining); `receive` is never called.
            InvalidRequestError: no load or memory would ever admit it.
        """

    def cancel(self, key: int) -> None:
        """End a request within one iteration; its blocks are freed. Unknown keys are ignored."""
