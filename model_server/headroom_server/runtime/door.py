"""Where requests come in: each is received once, and ends under one outcome."""

from __future__ import annotations

from collections.abc import Callable

from headroom_server.caching.cache import Asked, Cache
from headroom_server.connection import Connection
from headroom_server.device.execution import Outputs
from headroom_server.engine import Work
from headroom_server.errors import RefusedError, RequestError
from headroom_server.runtime.in_flight import InFlight
from headroom_server.runtime.outcomes import outcome_of
from headroom_server.runtime.pending import Told
from headroom_server.scheduling.admission import Refusal
from headroom_server.scheduling.refusals import closed_error
from headroom_server.scheduling.terms import Terms
from headroom_server.telemetry.accounting import Ledger, Outcome
from headroom_server.tracing.current import TRACE


class Door:
    """`closed` says why nobody is accepted now, and None while requests are."""

    def __init__(
        self,
        in_flight: InFlight,
        ledger: Ledger,
        *,
        closed: Callable[[], Refusal | None],
        clock: Callable[[], float],
        cache: Cache | None = None,
    ) -> None:
        self._in_flight = in_flight
        self._ledger = ledger
        self._closed = closed
        self._clock = clock
        self._cache = cache
        self.keeps_answers = cache is not None
        """Whether a request may be answered without an execution of its own."""

    async def infer(
        self, work: Work, *, arrived_s: float, terms: Terms, connection: Connection
    ) -> Outputs:
        """Wait for a batch and give its outputs. Cancelled where the client leaves meanwhile.

        Raises:
            RequestError: refused, expired, failed, abandoned or cancelled; each is one outcome.
        """
        self._ledger.received += 1
        outcome = Outcome.CANCELLED
        try:
            if self._cache is None:
                outputs = await self._executed(work, arrived_s, terms, connection)
            else:
                outputs = await self._kept(self._cache, work, arrived_s, terms, connection)
            outcome = Outcome.OK
        except RequestError as error:
            outcome = outcome_of(error)
            raise
        else:
            return outputs
        finally:
            self._ledger.end(outcome, self._clock() - arrived_s, terms.deadline_s)

    def submit(
        self, work: Work, *, arrived_s: float, terms: Terms, connection: Connection, told: Told
    ) -> None:
        """As `infer` without a cache, and without a coroutine: `told` is called with the end.

        Raises:
            RequestError: refused; `told` is not called.
        """
        self._ledger.received += 1
        try:
            refusal = self._closed()
            if refusal is not None:
                raise self._refused(refusal)
            self._in_flight.submit(
                work,
                arrived_s=arrived_s,
                terms=terms,
                connection=connection,
                told=told,
                counted=True,
            )
        except RequestError as error:
            self._ledger.end(outcome_of(error), self._clock() - arrived_s, terms.deadline_s)
            raise

    async def _executed(
        self, work: Work, arrived_s: float, terms: Terms, connection: Connection
    ) -> Outputs:
        self._check_open()
        return await self._in_flight.outputs(
            work, arrived_s=arrived_s, terms=terms, connection=connection
        )

    async def _kept(
        self, cache: Cache, work: Work, arrived_s: float, terms: Terms, connection: Connection
    ) -> Outputs:
        self._check_open()
        due_s = None if terms.deadline_s is None else arrived_s + terms.deadline_s
        # its turn may come later, when the door is closed: that is looked at again
        outputs, source = await cache.outputs(
            Asked(work, due_s, connection),
            lambda: self._executed(work, arrived_s, terms, connection),
        )
        trace = TRACE.get()
        if trace is not None:
            trace.source = source.value
        return outputs

    def _check_open(self) -> None:
        refusal = self._closed()
        if refusal is not None:
            raise self._refused(refusal)

    def refuse_unready(self) -> None:
        """Count and refuse a request that cannot even be checked, since no model is loaded.

        Raises:
            RefusedError: always.
        """
        self._ledger.received += 1
        self._ledger.end(Outcome.REFUSED, 0.0)
        raise self._refused(Refusal.NOT_READY)

    def _refused(self, refusal: Refusal) -> RefusedError:
        self._ledger.refuse(refusal)
        return closed_error(refusal)
