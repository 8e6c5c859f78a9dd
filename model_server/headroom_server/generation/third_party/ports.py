"""The port of a third-party engine: methods, and reports of iterations and answers. Pure."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple, Protocol

from headroom_server.generation.values import (
    FinishReason,
    GenerationLimits,
    GenerationRequest,
    SampledToken,
)


class Step(NamedTuple):
    """Report of the engine on one iteration; None: it reports nothing."""

    prompt_tokens: int = 0
    """Tokens of prompts that were computed."""
    decodes: int = 0
    """Sequences that were decoded."""
    seconds: float | None = None
    preemptions: int = 0
    waiting: int = 0
    """Requests that wait inside the engine."""
    used_share: float | None = None
    """Used share of the memory of keys and values."""


class Produced(NamedTuple):
    """The next tokens of one request; the last has `finish`, which is STOP or LENGTH."""

    tokens: tuple[SampledToken, ...] = ()
    finish: FinishReason | None = None
    cached_tokens: int = 0
    """Tokens of the prompt that the prefix cache supplied; given with the first token."""


Observe = Callable[[Step], None]


class ThirdPartyModel(Protocol):
    """A model behind its own engine. All methods are called on one event loop, in one thread."""

    device: str
    """Name of the hardware for people."""

    def open(self, observe: Observe) -> GenerationLimits:
        """Load and compile the model; `observe` is called after each iteration.

        Raises:
            LoadError: it can never work as configured.
        """

    def generate(self, request: GenerationRequest) -> AsyncGenerator[Produced, None]:
        """Generate one answer; closing the iterator, or cancelling its task, ends it.

        Raises:
            InvalidRequestError: the engine does not take such a request.
            DeviceLostError: nothing can be generated any more.
        """

    @property
    def lost(self) -> bool:
        """Whether nothing can be generated any more."""

    def close(self) -> None:
        """Release the model of `open`; its processes end."""
