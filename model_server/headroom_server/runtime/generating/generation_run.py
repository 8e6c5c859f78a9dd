"""One request for generated text: its choices in flight, its times, and its single outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headroom_server.generation.ports import ManagedEngine
from headroom_server.generation.values import Delivery, FinishReason, GenerationRequest
from headroom_server.protocols.request_options import RequestOptions
from headroom_server.runtime.generating.choice_run import ChoiceRun, Deliver
from headroom_server.telemetry.accounting import Outcome
from headroom_server.telemetry.class_ledger import ClassLedger, ClassLedgers
from headroom_server.telemetry.generation_ledger import GenerationLedger
from headroom_server.tracing.current import TRACE, Generated

WORST_FIRST = (
    Outcome.FAILED,
    Outcome.EXPIRED,
    Outcome.INVALID,
    Outcome.CANCELLED,
    Outcome.OK,
)


class GeneratingModel(Protocol):
    """The model of a request: its engine, and its counts."""

    clock: Callable[[], float]
    engine: ManagedEngine
    generation: GenerationLedger
    classes: ClassLedgers
    model: str

    def closed(self, run: GenerationRun, outcome: Outcome) -> None:
        """A run has its outcome."""
        ...


def _traced(model: str, clock: Callable[[], float]) -> Generated | None:
    """Return where the stages of the current request are noted; None: it is not sampled."""
    trace = TRACE.get()
    if trace is None:
        return None
    trace.model, trace.accepted_s = model, clock()
    trace.generated = Generated()
    return trace.generated


class GenerationRun:
    """A request's choices. It is received when it is made, and has exactly one outcome."""

    __slots__ = (
        "_choices", "_over", "_worst", "arrived_s", "clock", "generator", "options", "outcome",
        "trace",
    )  # fmt: skip

    def __init__(
        self, generator: GeneratingModel, arrived_s: float, options: RequestOptions
    ) -> None:
        self.generator = generator
        self.clock = generator.clock
        self.arrived_s = arrived_s
        self.options = options
        self._choices: dict[int, ChoiceRun] = {}
        self._worst = Outcome.OK
        self._over = False
        self.outcome: Outcome | None = None
        self.trace = _traced(generator.model, self.clock)

    @property
    def counts(self) -> GenerationLedger:
        """The counts of its model."""
        return self.generator.generation

    @property
    def of_class(self) -> ClassLedger | None:
        """The counts of the class that it names; None: it names none."""
        return self.generator.classes.of(self.options.slo_class)

    def note(self, trace: Generated, delivery: Delivery, prompt_tokens: int) -> None:
        """Note a delivery in the request's trace."""
        if not delivery.tokens:
            return
        now_s = self.clock()
        if trace.first_s is None:
            trace.first_s, trace.started_s = now_s, delivery.started_s
            trace.prompt_tokens = prompt_tokens
            trace.cached_tokens = delivery.cached_tokens
        trace.last_s = now_s
        trace.answer_tokens += len(delivery.tokens)

    def submit(self, requests: Sequence[GenerationRequest], delivers: Sequence[Deliver]) -> None:
        """Submit all choices; if one is refused, none is generated.

        Raises:
            RefusedError: not now.
            InvalidRequestError: never.
        """
        engine = self.generator.engine
        try:
            for request, deliver in zip(requests, delivers, strict=True):
                choice = ChoiceRun(self, request, deliver)
                engine.submit(request, choice.receive)
                self._choices[request.key] = choice
        except BaseException:
            self._withdraw()
            raise

    @property
    def over(self) -> bool:
        """Whether its outcome is recorded."""
        return self._over

    def runs(self, key: int) -> bool:
        """Return whether a choice has not ended."""
        return key in self._choices

    def stop(self, key: int) -> None:
        """End a choice whose answer is complete before its tokens are (a stop string)."""
        choice = self._choices.get(key)
        if choice is not None:
            self.generator.engine.cancel(key)
            choice.end(FinishReason.STOP)

    def cancel(self, outcome: Outcome = Outcome.CANCELLED) -> None:
        """The client left, another choice failed, or the answer is too large: end everything."""
        if self._over:
            return
        for choice in self._choices.values():
            self.counts.finished[FinishReason.CANCELLED] += 1
            self.generator.engine.cancel(choice.request.key)
        self._choices.clear()
        self.close(outcome if self._worst is Outcome.OK else self._worst)

    def close(self, outcome: Outcome) -> None:
        """Record the outcome, once."""
        if not self._over:
            self._over = True
            self.outcome = outcome
            self.generator.closed(self, outcome)

    def ended(self, key: int, outcome: Outcome) -> None:
        """A choice has ended."""
        if self._choices.pop(key, None) is None:
            return
        if WORST_FIRST.index(outcome) < WORST_FIRST.index(self._worst):
            self._worst = outcome
        if not self._choices:
            self.close(self._worst)

    def _withdraw(self) -> None:
        for key in list(self._choices):
            self.generator.engine.cancel(key)
        self._choices.clear()
