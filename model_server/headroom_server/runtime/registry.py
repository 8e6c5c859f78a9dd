"""The models of this process: one runner per version, loaded and unloaded while others serve.

Each version has its own queue, cost model, metrics and device thread, so that none waits for the
load, compilation or batch of another. A version that is loaded again becomes warm before it
replaces the old one, which then finishes its accepted requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from headroom_server.errors import UnknownModelError
from headroom_server.lifecycle import Phase
from headroom_server.runtime.runner import Runner
from headroom_server.runtime.served_model import (
    LoadFailedError,
    ModelState,
    ModelVersion,
    ServedModel,
)
from headroom_server.telemetry.accounting import Ledger
from headroom_server.telemetry.metrics import Snapshot

log = logging.getLogger("headroom_server")

JOIN_S = 0.2
"""Time for a device thread to notice that it should end."""


class Models:
    """Everything served here, by name and version."""

    def __init__(self, versions: Sequence[ModelVersion], *, unload_grace_s: float = 60.0) -> None:
        """Build the runners of the configured models; `start` begins to load them."""
        self._served: dict[str, dict[int, ServedModel]] = {}
        self._reachable: tuple[ServedModel, ...] = ()
        """All served models in a tuple; read with every response."""
        self._leaving: set[ServedModel] = set()
        self._arriving: set[ServedModel] = set()
        for version in versions:
            self._put(_built(version))
        self._configured = list(self.all())
        self._unload_grace_s = unload_grace_s
        self._watches: set[asyncio.Task[None]] = set()
        self._fatal = asyncio.Event()
        self._draining = False
        self._unattributed = Ledger()

    @staticmethod
    def of(runner: Runner) -> Models:
        """Return a registry of one model in version 1."""
        return Models([ModelVersion(runner.model, 1, lambda: runner)])

    # ---- the catalogue

    def find(self, name: str, version: str | None) -> ServedModel:
        """Return a version; by default the latest that is ready, else the latest.

        Raises:
            UnknownModelError: with the models that are served here.
        """
        versions = self._served.get(name)
        if versions is None:
            known = " and ".join(map(repr, self._served)) or "no model"
            raise UnknownModelError(f"this server serves {known:.500}; got {name!r:.100}")
        if version is None:
            if len(versions) == 1:
                return next(iter(versions.values()))
            return max(versions.values(), key=lambda one: (one.runner.ready, int(one.version)))
        found = versions.get(int(version)) if version.isdecimal() and len(version) < 20 else None
        if found is None or found.version != version:
            known = " and ".join(repr(str(number)) for number in versions)
            raise UnknownModelError(f"{name!r} has version {known:.500}; got {version!r:.100}")
        return found

    def all(self) -> Iterable[ServedModel]:
        """Return everything that requests can reach."""
        return self._reachable

    def states(self) -> dict[tuple[str, str], tuple[ModelState, str]]:
        """Return state and reason by name and version of all current models."""
        states = {(one.name, one.version): (ModelState.UNLOADING, "") for one in self._leaving}
        states |= {(one.name, one.version): (ModelState.LOADING, "") for one in self._arriving}
        for one in self.all():
            runner = one.runner
            state = ModelState.READY if runner.ready else ModelState.UNAVAILABLE
            if runner.lifecycle.starting and runner.failure is None:
                state = ModelState.LOADING
            states[one.name, one.version] = (state, runner.failure or "")
        return states

    # ---- at run time

    async def load(self, versions: Sequence[ModelVersion]) -> None:
        """Load versions of one model; they replace all of its current versions.

        Raises:
            LoadFailedError: one did not become warm; nothing has changed.
        """
        # the first model of an engine imports its libraries, which takes seconds while others serve
        arriving = [await asyncio.to_thread(_built, version) for version in versions]
        self._arriving.update(arriving)
        try:
            for one in arriving:
                one.runner.start()
            for one in arriving:
                await one.runner.started()
                if not one.runner.ready:
                    why = one.runner.failure or "the server is stopping"
                    raise LoadFailedError(f"model {one.name}, version {one.version}: {why}")
        except BaseException:
            self._discard(arriving)
            raise
        finally:
            self._arriving.difference_update(arriving)
        replaced = self._take(versions[0].name)
        for one in arriving:
            self._put(one)
            self._watch(one)
        await self._retire(replaced)

    async def unload(self, name: str) -> None:
        """Unload a model, and wait until its accepted requests are answered.

        Raises:
            UnknownModelError: it is not served.
        """
        if name not in self._served:
            raise UnknownModelError(f"model {name!r:.100} is not served")
        await self._retire(self._take(name))

    async def _retire(self, leaving: Sequence[ServedModel]) -> None:
        self._leaving.update(leaving)
        for one in leaving:
            one.runner.drain()
        try:
            async with asyncio.timeout(self._unload_grace_s):
                for one in leaving:
                    await one.runner.wait_idle()
        except TimeoutError:
            lost = sum(one.runner.abandon() for one in leaving)
            log.error("the unload grace period ended; %d accepted requests were not executed", lost)
        finally:
            self._discard(leaving)
            self._leaving.difference_update(leaving)

    def _discard(self, leaving: Sequence[ServedModel]) -> None:
        for one in leaving:
            # a request that found this model and is still being read gets a refusal
            one.runner.close_intake()
            one.runner.stop()

    def _put(self, one: ServedModel) -> None:
        self._served.setdefault(one.name, {})[int(one.version)] = one
        self._count()

    def _take(self, name: str) -> list[ServedModel]:
        taken = self._served.pop(name, {})
        self._count()
        return list(taken.values())

    def _count(self) -> None:
        self._reachable = tuple(one for some in self._served.values() for one in some.values())

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
        for one in (*self.all(), *self._arriving, *self._leaving):
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
        """Where invalid requests are counted: with the only model, else without a model."""
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
        for versions in self._served.values():
            for one in versions.values():
                snapshot, several = one.runner.snapshot(), len(versions) > 1
                states.append(replace(snapshot, version=one.version) if several else snapshot)
        return states

    def watch(self) -> None:
        """Detect hanging devices; to be called about every second."""
        for runner in self.runners:
            runner.watch()


def _built(version: ModelVersion) -> ServedModel:
    return ServedModel(version.build(), str(version.number))
