"""The entry point of inference requests: each is received once and has exactly one outcome."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headroom_server.caching.cache import Cache, CacheRequest
from headroom_server.caching.flights import Source
from headroom_server.connection import Connection
from headroom_server.device.batches import Outputs
from headroom_server.engine import Work
from headroom_server.errors import RefusedError, RequestError
from headroom_server.protocols.request_options import TIMEOUT, RequestOptions, check_deadline
from headroom_server.runtime.batching.featuring import Featuring
from headroom_server.runtime.batching.in_flight import InFlight
from headroom_server.runtime.batching.pending import DoneCallback, outcome_of
from headroom_server.scheduling.admission import Refusal, closed_error
from headroom_server.telemetry.accounting import Ledger, Outcome
from headroom_server.tracing.current import TRACE


class Intake:
    """Counts requests and passes them to the cache or the queue.

    `closed` returns why no request is accepted now, or None while requests are accepted.
    """

    def __init__(
        self,
        in_flight: InFlight,
        ledger: Ledger,
        *,
        closed: Callable[[], Refusal | None],
        clock: Callable[[], float],
        cache: Cache | None = None,
        featuring: Featuring | None = None,
    ) -> None:
        self._in_flight = in_flight
        self._ledger = ledger
        self._closed = closed
        self._clock = clock
        self._cache = cache
        self._featuring = featuring

    async def infer(
        self, work: Work, *, arrived_s: float, options: RequestOptions, connection: Connection
    ) -> Outputs:
        """Return the outputs of a request; cancelled if the client disconnects while it waits.

        Raises:
            ImpossibleDeadlineError: nothing was ever computed as fast; it is not received.
            RequestError: refused, expired, failed, abandoned or cancelled; each is one outcome.
        """
        self._check_deadline(options)
        self._ledger.receive(retried=options.retried)
        outcome = Outcome.CANCELLED
        try:
            if self._cache is None:
                outputs = await self._execute(work, arrived_s, options, connection)
            else:
                outputs = await self._from_cache(self._cache, work, arrived_s, options, connection)
            outcome = Outcome.OK
        except RequestError as error:
            outcome = outcome_of(error)
            raise
        else:
            return outputs
        finally:
            self._record(outcome, arrived_s, options)

    def submit(
        self,
        work: Work,
        *,
        arrived_s: float,
        options: RequestOptions,
        connection: Connection,
        on_done: DoneCallback,
    ) -> None:
        """Queue a request without a coroutine and without the cache, for the fast path.

        Raises:
            ImpossibleDeadlineError: nothing was ever computed as fast; it is not received.
            RequestError: refused; `on_done` is not called.
        """
        self._check_deadline(options)
        self._ledger.receive(retried=options.retried)
        try:
            self._check_open()
            self._in_flight.submit(
                work,
                arrived_s=arrived_s,
                options=options,
                connection=connection,
                on_done=partial(self._on_done, arrived_s, options, on_done),
            )
        except RequestError as error:
            self._record(outcome_of(error), arrived_s, options)
            raise

    def refuse_unready(self) -> None:
        """Count and refuse a request that cannot be validated, because no model is loaded.

        Raises:
            RefusedError: always.
        """
        self._ledger.receive(retried=False)
        self._ledger.end(Outcome.REFUSED, 0.0)
        raise self._refused(Refusal.NOT_READY)

    async def _execute(
        self, work: Work, arrived_s: float, options: RequestOptions, connection: Connection
    ) -> Outputs:
        self._check_open()
        if self._featuring is not None:
            due_s = None if options.deadline_s is None else arrived_s + options.deadline_s
            line = options.tenant, options.priority
            request = CacheRequest(work, due_s, connection, options.tenant, line)
            work = await self._featuring.featured(request)
            if self._closed() is Refusal.NOT_READY:  # it was accepted, even if it drains now
                raise self._refused(Refusal.NOT_READY)
        return await self._in_flight.outputs(
            work, arrived_s=arrived_s, options=options, connection=connection
        )

    async def _from_cache(
        self,
        cache: Cache,
        work: Work,
        arrived_s: float,
        options: RequestOptions,
        connection: Connection,
    ) -> Outputs:
        self._check_open()
        due_s = None if options.deadline_s is None else arrived_s + options.deadline_s
        # a request that waits for an equal one may execute after the intake was closed:
        # _execute checks again
        outputs, source = await cache.outputs(
            CacheRequest(work, due_s, connection, line=(options.tenant, options.priority)),
            lambda: self._execute(work, arrived_s, options, connection),
        )
        trace = TRACE.get()
        if trace is not None:
            trace.source = "device" if source is Source.COMPUTED else source.value
        return outputs

    def _on_done(
        self,
        arrived_s: float,
        options: RequestOptions,
        on_done: DoneCallback,
        result: Outputs | RequestError,
    ) -> None:
        outcome = outcome_of(result) if isinstance(result, RequestError) else Outcome.OK
        self._record(outcome, arrived_s, options)
        on_done(result)

    def _record(self, outcome: Outcome, arrived_s: float, options: RequestOptions) -> None:
        self._ledger.end(outcome, self._clock() - arrived_s, options.deadline_s)

    def _check_deadline(self, options: RequestOptions) -> None:
        if options.deadline_s is not None and self._cache is None:  # cached answers take no time
            check_deadline(options.deadline_s, self._in_flight.fastest_s, TIMEOUT)

    def _check_open(self) -> None:
        refusal = self._closed()
        if refusal is not None:
            raise self._refused(refusal)

    def _refused(self, refusal: Refusal) -> RefusedError:
        self._ledger.refuse(refusal)
        return closed_error(refusal)
