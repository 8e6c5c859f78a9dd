"""The ports of generation: an executor of iterations, or a whole engine. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from headroom_server.generation.values import (
    Delivery,
    GenerationLimits,
    GenerationRequest,
    Iteration,
    IterationResult,
    SequenceView,
)
from headroom_server.lifecycle import Phase


class Executor(Protocol):
    """A model on a device that computes iterations which a scheduler decided.

    All methods are called on one thread, the device thread.
    """

    device: str
    """Name of the hardware for people: `emulated`, `cpu`, or the GPU's name."""

    def load(self) -> GenerationLimits:
        """Load weights, reserve the memory of keys and values, return its capacity.

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
        """Discard the state of a request (random numbers, counts of tokens)."""

    def unload(self) -> None:
        """Release the weights and the memory of `load`."""


Receive = Callable[[Delivery], None]
"""Called on the event loop, in order, once per iteration of a request; the last has `finish`."""


class GenerationEngine(Protocol):
    """An engine behind the front: Headroom's (a scheduler and an executor) or a third-party one.

    Methods are called on the event loop and return at once.
    """

    @property
    def limits(self) -> GenerationLimits:
        """Limits of the loaded model; known once it is warm."""

    @property
    def fastest_s(self) -> float:
        """The shortest iteration ever, in seconds: no answer comes sooner. 0: none is known."""

    def check_count(self, tenant: str, count: int, *, batch_class: bool) -> None:
        """Check that this many choices of a request may wait, before they are made.

        Raises:
            RefusedError: they may not.
        """

    def submit(self, request: GenerationRequest, receive: Receive) -> None:
        """Accept a request.

        Raises:
            RefusedError: it is refused now (429 with the seconds to wait, or 503 while starting or
                draining); `receive` is never called.
            InvalidRequestError: no load or memory would ever admit it.
        """

    def cancel(self, key: int) -> None:
        """End a request within one iteration; its blocks are freed. Unknown keys are ignored."""


class WarmIteration(NamedTuple):
    """A shape that warm-up executed."""

    sequences: int
    tokens: int
    """Tokens computed per sequence: 1 for a decode."""
    drafts: int
    first_s: float
    """Duration of the first execution, including one-time work."""
    seconds: float
    """Median duration of later executions."""


class WarmEngine(NamedTuple):
    """An engine that is ready."""

    limits: GenerationLimits
    shapes: Sequence[WarmIteration]
    self_test_p95_s: float
    """95th percentile of the first token of a short prompt, alone."""


class EngineListener(Protocol):
    """Receives an engine's events on the event loop, one after the other."""

    def on_phase(self, phase: Phase, at_s: float) -> None:
        """A startup phase began at a time; the loop may be busy with imports then."""

    def on_warm(self, warm: WarmEngine) -> None:
        """The engine is ready."""

    def on_suspected(self, suspected: bool) -> None:
        """The engine fails every iteration, or no longer does."""

    def on_lost(self, message: str) -> None:
        """Nothing can be generated any more, or the engine did not become ready."""


class ManagedEngine(GenerationEngine, Protocol):
    """An engine that the server starts, watches and stops."""

    name: str
    """The kind of engine, for metrics and reports."""
    emulated: bool
    """Whether it only simulates the time of a device."""

    @property
    def device(self) -> str:
        """Name of the hardware for people."""

    def start(self, post: Callable[..., object], listener: EngineListener) -> None:
        """Start loading. `post(callable, *arguments)` calls on the event loop."""

    def close_intake(self) -> None:
        """Refuse new requests; accepted ones continue."""

    def abandon(self) -> None:
        """End every request with SHUTDOWN, and accept no others."""

    def fail_all(self, error: str) -> None:
        """End every request with FAILED; others are accepted."""

    def stop(self) -> None:
        """Ask the engine to end after its current iteration; nothing is reported any more."""

    def join(self, timeout_s: float) -> bool:
        """Wait for the engine to end; return whether it has."""

    @property
    def executing_since_s(self) -> float | None:
        """Begin of the current iteration, on the server's clock; None between iterations."""

    def statistics(self) -> EngineStatistics:
        """Return counts since the start and the present state, from one instant."""


class EngineStatistics(NamedTuple):
    """Counts of an engine since its start, then its present state; None: not known."""

    iterations: int = 0
    failed_iterations: int = 0
    busy_s: float = 0.0
    """Seconds in which iterations were executed."""
    computed_prompt_tokens: int = 0
    """Tokens of prompts, and of preempted answers, that were computed."""
    cached_prompt_tokens: int = 0
    """Tokens of prompts that the prefix cache supplied."""
    generated_tokens: int = 0
    accepted_tokens: int = 0
    """Drafted tokens that the model accepted."""
    rejected_tokens: int = 0
    preemptions: int = 0
    cost_xx: Sequence[float] = ()
    """Sum over all iterations of the products of (1, P, D, KV, X): upper triangle by rows."""
    cost_xy: Sequence[float] = ()
    """Sum over all iterations of (1, P, D, KV, X) times the iteration's seconds."""
    used_blocks: int = 0
    cached_blocks: int = 0
    free_blocks: int = 0
    waiting_requests: int = 0
    waiting_batch_class: int = 0
    """Waiting requests that belong to the batch class."""
    waiting_tokens: int = 0
    """Tokens of prompts that are accepted and not computed."""
    context_tokens: int = 0
    """Tokens in the contexts of running requests."""
