"""One choice of a request for generated text: its deliveries, its times, its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headroom_server.generation.values import Delivery, FinishReason, GenerationRequest
from headroom_server.telemetry.accounting import Outcome
from headroom_server.telemetry.class_ledger import ClassLedger
from headroom_server.telemetry.generation_ledger import GenerationLedger
from headroom_server.tracing.current import Generated

Deliver = Callable[[Delivery], object]
"""Gets what one iteration produced for one choice; the last has `finish`."""


OUTCOMES = {
    FinishReason.STOP: Outcome.OK,
    FinishReason.LENGTH: Outcome.OK,
    FinishReason.CANCELLED: Outcome.CANCELLED,
    FinishReason.EXPIRED: Outcome.EXPIRED,
    FinishReason.FAILED: Outcome.FAILED,
    FinishReason.CONSTRAINT: Outcome.INVALID,
    FinishReason.SHUTDOWN: Outcome.FAILED,
}


class Request(Protocol):
    """The request of a choice: its times, its counts, and which of its choices have not ended."""

    arrived_s: float
    clock: Callable[[], float]
    trace: Generated | None

    @property
    def counts(self) -> GenerationLedger:
        """The counts of its model."""
        ...

    @property
    def of_class(self) -> ClassLedger | None:
        """The counts of the class that it names; None: it names none."""
        ...

    def note(self, trace: Generated, delivery: Delivery, prompt_tokens: int) -> None:
        """Note a delivery in its trace."""
        ...

    def runs(self, key: int) -> bool:
        """Return whether a choice has not ended."""
        ...

    def ended(self, key: int, outcome: Outcome) -> None:
        """A choice has ended."""
        ...


class ChoiceRun:
    """One choice in the engine."""

    __slots__ = ("_deliver", "_first_s", "_last_s", "_run", "request", "tokens")

    def __init__(self, run: Request, request: GenerationRequest, deliver: Deliver) -> None:
        self.request = request
        self.tokens = 0
        self._run = run
        self._deliver = deliver
        self._first_s = self._last_s = 0.0

    def receive(self, delivery: Delivery) -> None:
        """Account for a delivery, and pass it on."""
        run, count = self._run, len(delivery.tokens)
        trace = run.trace
        if trace is not None:
            run.note(trace, delivery, len(self.request.prompt))
        if count:
            now_s, ledger = run.clock(), run.counts
            if self.tokens:
                ledger.later(now_s - self._last_s, count)
            else:
                self._first_s = now_s
                took_s, size = now_s - run.arrived_s, len(self.request.prompt)
                ledger.first(took_s, size, delivery.cached_tokens)
                if (own := run.of_class) is not None:
                    own.tokens.first(took_s, size, delivery.cached_tokens)
            self._last_s = now_s
            self.tokens += count
        try:
            self._deliver(delivery)
        except Exception:
            self.end(FinishReason.FAILED)
            raise
        if trace is not None and count:
            trace.writing_s += run.clock() - now_s
        if delivery.finish is not None:
            self.end(delivery.finish)

    def end(self, reason: FinishReason) -> None:
        """The choice is complete, unless its request is over already."""
        if not self._run.runs(self.request.key):
            return
        spent_s = self._last_s - self._first_s
        if self._run.trace is not None:
            self._run.trace.finish_reasons.append(str(reason))
        prompt_tokens = len(self.request.prompt)
        self._run.counts.finish(reason, prompt_tokens, self.tokens, spent_s)
        if (own := self._run.of_class) is not None:
            own.tokens.finish(reason, prompt_tokens, self.tokens, spent_s)
        self._run.ended(self.request.key, OUTCOMES[reason])
