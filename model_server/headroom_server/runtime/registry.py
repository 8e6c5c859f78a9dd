"""The models of this process: one runner per version, loaded and unloaded while others serve.

Each version has its own queue, cost model, metrics and device thread, so that none waits for the
load, compilation or batch of another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from headroom_server.lifecycle import Phase
from headroom_server.runtime.batching.runner import Runner
from headroom_server.runtime.catalogue import Catalogue
from headroom_server.runtime.model_changes import ModelChanges, built
from headroom_server.runtime.served_model import ModelState, ModelVersion, ServedModel
from headroom_server.telemetry.accounting import Ledger
from headroom_server.telemetry.snapshot import Snapshot

JOIN_S = 0.2
"""Time for a device thread to notice that it should end."""


class Models(Catalogue):
    """Everything served here, by name and version."""

    def __init__(self, versions: Sequence[ModelVersion], *, unload_grace_s: float = 60.0) -> None:
        """Build the runners of the configured models; `start` begins to load them."""
        super().__init__()
        for version in versions:
            self.put(built(version))
        self._configured = list(self.all())
        self._changes = ModelChanges(self, unload_grace_s=unload_grace_s, on_served=self._watch)
        self._watches: set[asyncio.Task[None]] = set()
        self._fatal = asyncio.Event()
        self._draining = False
        self._unattributed = Ledger()

    @staticmethod
    def of(runner: Runner) -> Models:
        """Return a registry of one model in version 1."""
        return Models([ModelVersion(runner.model, 1, lambda: runner)])

    def states(self) -> dict[tuple[str, str], tuple[ModelState, str]]:
        """Return state and reason by name and version of all current models."""
        leaving, arriving = self._changes.leaving, self._changes.arriving
        states = {(one.name, one.version): (ModelState.UNLOADING, "") for one in leaving}
        states |= {(one.name, one.version): (ModelState.LOADING, "") for one in arriving}
        for one in self.all():
            runner = one.runner
            state = ModelState.READY if runner.ready else ModelState.UNAVAILABLE
            if runner.lifecycle.starting and runner.failure is None:
                state = ModelState.LOADING
            states[one.name, one.version] = (state, runner.failure or "")
        return states

    async def load(self, versions: Sequence[ModelVersion]) -> None:
        """Load versions of one model, which replace its others; see `ModelChanges.load`.

        Raises:
            LoadFailedError: one did not become warm; nothing has changed.
        """
        await self._changes.load(versions)

    async def unload(self, name: str) -> None:
        """Unload a model, and wait until its accepted requests are answered.

        Raises:
            UnknownModelError: it is not served.
        """
        await self._changes.unload(name)

    def _watch(self, one: ServedModel) -> None:
        async def watch() -> None:
            await one.runner.failed()
            if one in self.all():
                self._fatal.set()

        task = asyncio.create_task(watch())
        self._watches.add(task)
        task.add_done_callback(self._watches.discard)

    # ---- life: the runners combined

    def start(self) -> None:
        """Start loading the configured models, on the running loop."""
        for one in self._configured:
            one.runner.start()
            self._watch(one)

    async def failed(self) -> None:
        """Wait until a served model cannot execute any more."""
        await self._fatal.wait()

    @property
    def runners(self) -> Iterator[Runner]:
        """All runners, reachable or not."""
        for one in (*self.all(), *self._changes.all()):
            yield one.runner

    @property
    def warm(self) -> bool:
        """Whether all reachable models are loaded."""
        return all(one.runner.signature is not None for one in self.all())

    @property
    def begun(self) -> bool:
        """Whether a model accepts requests, so that there is something to drain."""
        return any(one.runner.lifecycle.phase is Phase.READY for one in self.all())

    @property
    def ready(self) -> bool:
        """Whether all reachable models are ready; models that are still loading are not counted."""
        return not self.draining and all(one.runner.ready for one in self.all())

    @property
    def live(self) -> bool:
        """Whether no restart is needed."""
        return all(one.runner.live for one in self.all())

    @property
    def impaired(self) -> bool:
        """Whether a device was lost and others do its work."""
        return any(runner.impaired for runner in self.runners)

    @property
    def draining(self) -> bool:
        """Whether the server drains."""
        if self._draining:
            return True
        for one in self._reachable:  # noqa: SIM110 - asked per answer, and a generator costs as much again
            if one.runner.draining:
                return True
        return False

    @property
    def ledger(self) -> Ledger:
        """Ledger that counts invalid requests: the only model's, else one without a model."""
        served = list(self.all())
        return served[0].runner.ledger if len(served) == 1 else self._unattributed

    @property
    def overloaded(self) -> bool:
        """Whether a model's queue is so long that clients do better with another replica."""
        for one in self._reachable:  # noqa: SIM110 - asked per answer, as above
            if one.runner.overloaded:
                return True
        return False

    @property
    def unattributed(self) -> Mapping[str, int]:
        """Invalid requests that belong to none of several models, by reason."""
        return self._unattributed.invalid

    def drain(self) -> None:
        """Become unready; loaded models accept requests until the intake is closed."""
        self._draining = True
        for runner in self.runners:
            runner.drain()

    def close_intake(self) -> None:
        """Refuse new requests from now on."""
        for runner in self.runners:
            runner.close_intake()

    async def wait_idle(self) -> None:
        """Wait until every accepted request has ended."""
        await asyncio.gather(*(runner.wait_idle() for runner in self.runners))

    def abandon(self) -> int:
        """Fail every request in flight; return how many."""
        return sum(runner.abandon() for runner in self.runners)

    def stop(self) -> None:
        """Ask all device threads to end after their current batch."""
        for task in self._watches:
            task.cancel()
        for runner in self.runners:
            runner.stop()

    def join(self) -> bool:
        """Wait briefly for the device threads; return whether all have ended."""
        return all(runner.join(JOIN_S) for runner in self.runners)

    def snapshots(self) -> list[Snapshot]:
        """Return the state for metrics; with the version if a model is served in several."""
        states = []
        for versions in self.by_name().values():
            for one in versions.values():
                snapshot, several = one.runner.snapshot(), len(versions) > 1
                states.append(replace(snapshot, version=one.version) if several else snapshot)
        return states

    def watch(self) -> None:
        """Detect hanging devices; to be called about every second."""
        for runner in self.runners:
            runner.watch()
