"""The requests of one generating model: each is received once, and has one outcome.

Everything runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from headroom_server.caching.generation_cache import GenerationCache
from headroom_server.errors import LateError, QueueFullError, RefusedError
from headroom_server.generation.ports import ManagedEngine
from headroom_server.protocols.request_options import (
    FIRST_TOKEN_TIMEOUT,
    TIMEOUT,
    RequestOptions,
    SloClasses,
    check_deadline,
)
from headroom_server.runtime.generating.generation_run import GenerationRun
from headroom_server.runtime.model_life import ModelLife
from headroom_server.scheduling.admission import Refusal, closed_error
from headroom_server.telemetry.accounting import Ledger, Outcome
from headroom_server.telemetry.class_ledger import ClassLedgers
from headroom_server.telemetry.generation_ledger import GenerationLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorOptions:
    """Limits of one model's life, and the classes of its requests."""

    stall_timeout_s: float = 60.0
    warmup_timeout_s: float = 600.0
    classes: SloClasses = field(default_factory=dict)
    bounds_batch_classes: bool = False
    """Whether the engine bounds what the batch class adds to the time per token of others."""


class GenerationRequests(ModelLife, ABC):
    """Entry for a model's clients, behind which an engine computes."""

    def __init__(
        self,
        model: str,
        engine: ManagedEngine,
        options: GeneratorOptions,
        clock: Callable[[], float],
        cache: GenerationCache | None,
    ) -> None:
        super().__init__(model, clock)
        self.engine = engine
        self.options = options
        self.cache = cache
        self.ledger = Ledger()
        self.generation = GenerationLedger()
        classes, bounds = options.classes, options.bounds_batch_classes
        batch_classes = {name for name, one in classes.items() if one.batch and bounds}
        self.classes = ClassLedgers(classes, batch_classes)
        self._keys = itertools.count(1)
        self._runs: set[GenerationRun] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @abstractmethod
    def _closed(self) -> Refusal | None:
        """Return why no request is accepted now; None if one is."""

    @property
    def in_flight(self) -> int:
        """Requests received and not ended."""
        return len(self._runs)

    def key(self) -> int:
        """Return the next choice's key."""
        return next(self._keys)

    def begin(self, arrived_s: float, options: RequestOptions) -> GenerationRun:
        """Receive a valid request; its run must be closed.

        Raises:
            ImpossibleDeadlineError: nothing was ever computed as fast; it is not received.
            RefusedError: no request is accepted now; it is counted.
        """
        if self.cache is None:  # a cached answer takes no time
            fastest_s = self.engine.fastest_s
            check_deadline(options.deadline_s, fastest_s, TIMEOUT)
            check_deadline(options.first_token_deadline_s, fastest_s, FIRST_TOKEN_TIMEOUT)
        self.ledger.receive(retried=options.retried)
        if (own := self.classes.of(options.slo_class)) is not None:
            own.requests.receive(retried=options.retried)
        run = GenerationRun(self, arrived_s, options)
        self._runs.add(run)
        self._idle.clear()
        refusal = self._closed()
        if refusal is not None:
            self.ledger.refuse(refusal)
            run.close(Outcome.REFUSED)
            raise closed_error(refusal)
        return run

    def refused(self, error: RefusedError) -> None:
        """Count the reason of an engine's refusal."""
        if isinstance(error, LateError):
            reason = Refusal.DEADLINE
        else:
            full = isinstance(error, QueueFullError)
            reason = Refusal.QUEUE_FULL if full else Refusal.DRAINING
        self.ledger.refuse(reason)

    def closed(self, run: GenerationRun, outcome: Outcome) -> None:
        """A run has its outcome."""
        self._runs.discard(run)
        if not self._runs:
            self._idle.set()
        took_s, options = self.clock() - run.arrived_s, run.options
        self.ledger.end(outcome, took_s, options.deadline_s)
        if (own := self.classes.of(options.slo_class)) is not None:
            own.requests.end(outcome, took_s, options.deadline_s)

    def close_intake(self) -> None:
        """Refuse new requests from now on."""
        super().close_intake()
        self.engine.close_intake()

    async def wait_idle(self) -> None:
        """Wait until every accepted request has ended."""
        await self._idle.wait()

    def abandon(self) -> int:
        """End every request in flight with an error; return how many."""
        count = len(self._runs)
        self.engine.abandon()
        for run in list(self._runs):  # those that were still being tokenized
            run.cancel()
        return count
