"""Submits the requests of a call to the engine, or replays their answer from the cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headroom_server.caching.generation_cache import CacheLookup
from headroom_server.connection import Connection
from headroom_server.errors import DisconnectedError, QueueFullError, RefusedError
from headroom_server.generation.values import Delivery
from headroom_server.openai_api.answers.cached import Recording, replay
from headroom_server.openai_api.answers.choice_parts import AnswerContext
from headroom_server.runtime.generating.generation_run import GenerationRun
from headroom_server.runtime.generating.generator import Generator
from headroom_server.telemetry.accounting import Outcome


class Submission:
    """One call. `lookup` is the result of its look-up; None: the call is not cached."""

    def __init__(
        self,
        generator: Generator,
        run: GenerationRun,
        context: AnswerContext,
        lookup: CacheLookup | None,
    ) -> None:
        self._generator = generator
        self._run = run
        self._context = context
        self._looked = lookup
        self._recording: Recording | None = None

    def begin(
        self,
        receive: Callable[[int, Delivery], None],
        connection: Connection,
        leave: Callable[[], None],
    ) -> None:
        """Have every choice's deliveries given to `receive`; `leave` is called if the client does.

        Raises:
            RequestError: the client has left, or the engine refuses the call.
        """
        if connection.gone:
            raise DisconnectedError
        connection.on_lost = leave
        run, requests, lookup = self._run, self._context.requests, self._looked
        if lookup is not None:
            if lookup.hit is not None:
                replay(lookup.hit, requests, receive)
                run.close(Outcome.OK)
                return
            self._recording = Recording(receive, len(requests))
            receive = self._recording.receive
        delivers = [partial(receive, index) for index in range(len(requests))]
        try:
            run.submit(requests, delivers)
        except RefusedError as error:
            self._generator.refused(error)
            run.close(Outcome.REFUSED)
            raise
        except BaseException:
            run.close(Outcome.FAILED)
            raise

    def keep(self) -> None:
        """Keep a complete answer in the cache."""
        lookup, recording = self._looked, self._recording
        if lookup is not None and recording is not None and self._run.outcome is Outcome.OK:
            lookup.keep(recording.answer)

    def refuse(self, error: QueueFullError) -> None:
        """End a call whose answer finds no memory."""
        self._generator.refused(error)
        self._run.cancel(Outcome.REFUSED)

    def give_up(self) -> None:
        """End a call whose client does not read its answer."""
        self._generator.generation.slow_readers += 1
        self._run.cancel()
