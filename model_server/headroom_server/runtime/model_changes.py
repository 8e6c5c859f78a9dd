"""Loads and unloads models while others serve.

A version that is loaded again becomes warm before it replaces the old one, which then finishes its
accepted requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence

from headroom_server.errors import UnknownModelError
from headroom_server.runtime.catalogue import Catalogue
from headroom_server.runtime.served_model import LoadFailedError, ModelVersion, ServedModel

log = logging.getLogger("headroom_server")


class ModelChanges:
    """The models that come and go. `on_served` is called with each that replaces another."""

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        unload_grace_s: float,
        on_served: Callable[[ServedModel], None],
    ) -> None:
        self.leaving: set[ServedModel] = set()
        self.arriving: set[ServedModel] = set()
        self._catalogue = catalogue
        self._unload_grace_s = unload_grace_s
        self._on_served = on_served

    def all(self) -> Iterator[ServedModel]:
        """Return the models that are being loaded or unloaded."""
        yield from (*self.arriving, *self.leaving)

    async def load(self, versions: Sequence[ModelVersion]) -> None:
        """Load versions of one model; they replace all of its current versions.

        Raises:
            LoadFailedError: one did not become warm; nothing has changed.
        """
        # the first model of an engine imports its libraries, which takes seconds while others serve
        arriving = [await asyncio.to_thread(built, version) for version in versions]
        self.arriving.update(arriving)
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
            self.arriving.difference_update(arriving)
        replaced = self._catalogue.take(versions[0].name)
        for one in arriving:
            self._catalogue.put(one)
            self._on_served(one)
        await self._retire(replaced)

    async def unload(self, name: str) -> None:
        """Unload a model, and wait until its accepted requests are answered.

        Raises:
            UnknownModelError: it is not served.
        """
        if name not in self._catalogue:
            raise UnknownModelError(f"model {name!r:.100} is not served")
        await self._retire(self._catalogue.take(name))

    async def _retire(self, leaving: Sequence[ServedModel]) -> None:
        self.leaving.update(leaving)
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
            self.leaving.difference_update(leaving)

    def _discard(self, leaving: Sequence[ServedModel]) -> None:
        for one in leaving:
            # a request that found this model and is still being read gets a refusal
            one.runner.close_intake()
            one.runner.stop()


def built(version: ModelVersion) -> ServedModel:
    """Build the runner of a version, which does not load it."""
    return ServedModel(version.build(), str(version.number))
