"""One generating model and its engine: start, health, what the engine reports, metrics.

Everything runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable

from headroom_server.caching.features import FeatureCache
from headroom_server.caching.generation_cache import GenerationCache
from headroom_server.errors import RefusedError
from headroom_server.generation.ports import ManagedEngine, WarmEngine
from headroom_server.generation.values import GenerationLimits
from headroom_server.lifecycle import Phase
from headroom_server.runtime.generating.generation_requests import (
    GenerationRequests,
    GeneratorOptions,
)
from headroom_server.scheduling.admission import Refusal
from headroom_server.telemetry.generation_snapshot import GenerationSnapshot

log = logging.getLogger("headroom_server")


class Generator(GenerationRequests):
    """A model that generates, behind the engine's port."""

    def __init__(
        self,
        model: str,
        engine: ManagedEngine,
        options: GeneratorOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        cache: GenerationCache | None = None,
        features: FeatureCache | None = None,
    ) -> None:
        super().__init__(model, engine, options or GeneratorOptions(), clock, cache)
        self.features = features
        self.warm_engine: WarmEngine | None = None
        self.suspected = False
        self.started_at_s = time.time()
        self._pages = itertools.count(1)
        self._stalled_since_s: float | None = None

    # ---- life

    def start(self) -> None:
        """Start loading, on the running loop."""
        self.engine.start(asyncio.get_running_loop().call_soon_threadsafe, self)

    def stop(self) -> None:
        """Ask the engine to end."""
        self.engine.stop()
        self._stopped()

    def join(self, timeout_s: float) -> bool:
        """Wait for the engine; return whether it has ended."""
        return self.engine.join(timeout_s)

    def watch(self) -> None:
        """Detect an iteration or a start-up that hangs; to be called about every second."""
        now_s = self.clock()
        since_s = self.engine.executing_since_s
        stalled = since_s is not None and now_s - since_s > self.options.stall_timeout_s
        if stalled and self._stalled_since_s is None:
            self._stalled_since_s = since_s
            log.error(
                "an iteration has run for more than HEADROOM_STALL_TIMEOUT_S=%g s; %d requests "
                "failed",
                self.options.stall_timeout_s,
                len(self._runs),
            )
            self.engine.fail_all("the device does not respond")
        elif not stalled:
            self._stalled_since_s = None
        if self._start_hangs(self.options.warmup_timeout_s):
            self.on_lost(
                "the model did not become warm within "
                f"HEADROOM_WARMUP_TIMEOUT_S={self.options.warmup_timeout_s:g} s"
            )

    @property
    def warm(self) -> bool:
        """Whether the model is loaded and warm."""
        return self.warm_engine is not None

    @property
    def begun(self) -> bool:
        """Whether it accepts requests, so that there is something to drain."""
        return self.lifecycle.phase is Phase.READY

    @property
    def impaired(self) -> bool:
        """Whether only a restart brings everything back."""
        return self.failure is not None

    @property
    def overloaded(self) -> bool:
        """Whether clients do better with another replica: two full iterations are in flight."""
        warm = self.warm_engine
        return warm is not None and len(self._runs) > 2 * warm.limits.max_sequences

    @property
    def ready(self) -> bool:
        """Whether it is warm, able to generate, and not draining."""
        return self.lifecycle.ready and self._fit

    @property
    def live(self) -> bool:
        """Whether no restart is needed; independent of load."""
        return self.failure is None and self._stalled_since_s is None

    @property
    def limits(self) -> GenerationLimits:
        """Limits of the loaded model.

        Raises:
            RefusedError: it is not loaded yet.
        """
        if self.warm_engine is None:
            raise RefusedError("this replica is not ready", retry_after_s=1)
        return self.warm_engine.limits

    @property
    def _fit(self) -> bool:
        return self.failure is None and not self.suspected and self._stalled_since_s is None

    def _closed(self) -> Refusal | None:
        serving = self.warm and self._fit
        if serving and self.lifecycle.phase is Phase.READY:
            return None
        return self._refusal(serving=serving)

    # ---- what the engine reports

    def on_warm(self, warm: WarmEngine) -> None:
        """The engine is ready."""
        self.warm_engine = warm
        for cache in (self.cache, self.features):
            if cache is not None:
                cache.start()
        self._warmed()

    def on_suspected(self, suspected: bool) -> None:
        """The engine fails every iteration, or no longer does."""
        self.suspected = suspected
        log.warning("the engine %s", "fails every iteration" if suspected else "works again")

    def on_lost(self, message: str) -> None:
        """Nothing can be generated any more."""
        self.failure = message
        log.error("%s", message)
        self.engine.abandon()
        self._lost()

    # ---- reports

    def snapshot(self) -> GenerationSnapshot:
        """Return the state for metrics."""
        warm = self.warm_engine
        return GenerationSnapshot(
            model=self.model,
            engine=self.engine.name,
            device=self.engine.device,
            emulated=self.engine.emulated,
            ledger=self.ledger,
            generation=self.generation,
            classes=self.classes,
            counts=self.engine.statistics(),
            in_flight=len(self._runs),
            limits=None if warm is None else warm.limits,
            ready=self.ready,
            draining=self.lifecycle.phase is Phase.DRAINING,
            phase_s=self.lifecycle.seconds(self.clock()),
            page=next(self._pages),
            cache=None if self.cache is None else self.cache.counts(),
            features=None if self.features is None else self.features.counts(),
        )
