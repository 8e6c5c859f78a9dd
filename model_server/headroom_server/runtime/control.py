"""The model repository extension for all protocols: index, load, unload.

Load and unload decide what runs here. They are refused unless the server was started with
HEADROOM_MODEL_CONTROL=explicit, and a request never contains any part of a model.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from headroom_server.engine import LoadError
from headroom_server.errors import InvalidRequestError, RequestError, public
from headroom_server.repository.folder import NAME
from headroom_server.runtime.registry import Models
from headroom_server.runtime.served_model import LoadFailedError, ModelState
from headroom_server.runtime.store import ModelStore

log = logging.getLogger("headroom_server")


class IndexEntry(NamedTuple):
    """One version of a model, its state and the reason."""

    name: str
    version: str
    state: ModelState
    reason: str


class ControlRefusedError(RequestError):
    """The server does not load or unload models by request."""

    status = 403


class LoadRefusedError(RequestError):
    """The model in the repository cannot be loaded."""

    status = 400


class Control:
    """Loads and unloads the models of a store."""

    def __init__(self, models: Models, store: ModelStore, *, explicit: bool) -> None:
        self._models = models
        self._store = store
        self._explicit = explicit

    async def index(self, *, ready: bool) -> list[IndexEntry]:
        """List everything in the repository or served, or only what is ready."""
        states = {key: (ModelState.UNAVAILABLE, why) for key, why in (await self._known()).items()}
        states |= self._models.states()
        return [
            IndexEntry(name, version, state, public(reason))
            for (name, version), (state, reason) in sorted(states.items())
            if state is ModelState.READY or not ready
        ]

    async def load(self, name: str) -> None:
        """Load a model as it is in the repository now; it is warm on return.

        Raises:
            RequestError: not permitted or not possible; nothing has changed.
        """
        self.permit()
        _check_name(name)
        try:
            await self._models.load(await asyncio.to_thread(self._store.versions, name))
        except (LoadError, LoadFailedError) as error:
            log.warning("model %s is not loaded: %s", name, error)
            raise LoadRefusedError(public(f"model {name!r} is not loaded: {error}")) from error
        except ModuleNotFoundError as error:
            raise LoadRefusedError(
                f"model {name!r} is not loaded: it requires {error.name}, which is not "
                "installed in this image"
            ) from error

    async def unload(self, name: str) -> None:
        """Unload a model once its accepted requests are answered; others keep serving.

        Raises:
            RequestError: not permitted, or the model is not served.
        """
        self.permit()
        _check_name(name)
        await self._models.unload(name)

    def permit(self) -> None:
        """Check that models may be loaded and unloaded at run time.

        Raises:
            ControlRefusedError: they may not.
        """
        if not self._explicit:
            raise ControlRefusedError(
                "this server does not load or unload models at run time: start it with "
                "HEADROOM_MODEL_CONTROL=explicit"
            )
        if self._models.draining:
            raise ControlRefusedError("this replica is stopping")

    async def _known(self) -> dict[tuple[str, str], str]:
        try:
            return await asyncio.to_thread(self._store.known)
        except LoadError:
            return {}  # a server without a repository still lists what it serves


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise InvalidRequestError(
            f"a model's name must consist of letters, digits, '.', '_' and '-'; got {name!r:.100}"
        )
