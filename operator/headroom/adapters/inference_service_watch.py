"""Watches InferenceServices with kopf, and nothing else of kopf.

No timers, daemons, indexes, finalizers or patches.

When kopf ends, it cancels every task of its event loop that is younger than itself. So it gets a
loop of its own, in a thread; events cross over. When it ends by a fault (it does after a minute of
5xx, and at once when the CRD goes), it is started again after a pause: nothing that it says is
relied on alone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import kopf

_log = logging.getLogger(__name__)

OnEvent = Callable[[str | None, dict[str, Any]], None]
"""Takes the type (None: was there already; ADDED, MODIFIED, DELETED) and the object."""

HEALTHY_AFTER_S = 60.0
BEAT_EVERY_S = 1.0
STOP_WITHIN_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait after a fault of the API."""

    shortest_pause_s: float = 1.0
    longest_pause_s: float = 5.0
    """What appears while there is no watch is seen this late at most, once the API answers."""
    back_offs_s: tuple[float, ...] = (1.0, 2.0, 3.0)
    """Of kopf's own: soon it gives up, and is begun anew. By itself it waits up to 21 s."""


class InferenceServiceWatch:
    """Watches the kind in the namespaces given; none given means all."""

    def __init__(
        self,
        group: str,
        version: str,
        plural: str,
        namespaces: Sequence[str],
        *,
        login: Callable[..., kopf.ConnectionInfo | None] | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._kind = (group, version, plural)
        self._namespaces = tuple(namespaces)
        self._login = login or _login
        self._patience = patience or Patience()
        self._beaten_s: float | None = None

    def silent_s(self) -> float:
        """How long kopf's event loop has not turned; 0 while there is none.

        Seconds of the caller's event loop, which is the one of `run`.
        """
        if self._beaten_s is None:
            return 0.0
        return asyncio.get_running_loop().time() - self._beaten_s

    async def run(
        self,
        on_event: OnEvent,
        until_served: Callable[[], Awaitable[object]],
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Watch until cancelled. `on_event` is called on the caller's event loop.

        kopf looks once for the kind and idles for ever where it is not there, so the watch begins
        when `until_served` says that it is. `on_end` hears of every end: until the watch is back
        nothing is told.
        """
        loop = asyncio.get_running_loop()
        pause_s = self._patience.shortest_pause_s
        while True:
            await until_served()
            begun_s = loop.time()
            fault = await self._watch_once(on_event)
            on_end()
            if loop.time() - begun_s > HEALTHY_AFTER_S:
                pause_s = self._patience.shortest_pause_s
            _log.warning("the watch ended, and begins again in %.0f s: %s", pause_s, fault)
            await asyncio.sleep(pause_s)
            pause_s = min(2.0 * pause_s, self._patience.longest_pause_s)

    async def _watch_once(self, on_event: OnEvent) -> BaseException | None:
        """Run kopf in a thread until it ends; return what ended it."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[BaseException | None] = loop.create_future()
        stop = threading.Event()

        def finish(fault: BaseException | None) -> None:
            if not ended.done():
                ended.set_result(fault)

        def watch() -> None:
            fault: BaseException | None = None
            try:
                asyncio.run(self._kopf(loop, on_event, stop))
            except BaseException as error:  # noqa: BLE001  (handed to the other loop, whatever it is)
                fault = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(finish, fault)

        thread = threading.Thread(target=watch, name="watch", daemon=True)
        self._beaten_s = loop.time()
        thread.start()
        try:
            return await asyncio.shield(ended)
        finally:
            self._beaten_s = None
            stop.set()
            await asyncio.wait([ended], timeout=STOP_WITHIN_S)

    async def _kopf(
        self, loop: asyncio.AbstractEventLoop, on_event: OnEvent, stop: threading.Event
    ) -> None:
        registry = kopf.OperatorRegistry()

        async def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
            return self._login(**kwargs)

        async def event(*, event: Any, **_: Any) -> None:
            loop.call_soon_threadsafe(on_event, event["type"], dict(event["object"]))

        async def beat() -> None:
            while True:
                loop.call_soon_threadsafe(self._beat)
                await asyncio.sleep(BEAT_EVERY_S)

        kopf.on.login(registry=registry)(login)
        kopf.on.event(*self._kind, registry=registry)(event)
        beating = asyncio.create_task(beat())
        try:
            await kopf.operator(
                registry=registry,
                settings=_settings(self._patience),
                standalone=True,
                # Else kopf asks for the user's name, which the numeric user of an image has not.
                identity="headroom",  # type: ignore[arg-type]
                clusterwide=not self._namespaces,
                namespaces=self._namespaces,
                stop_flag=stop,
            )
        finally:
            beating.cancel()
            stop.set()  # a thread of this loop waits for it, and the loop for the thread

    def _beat(self) -> None:
        if self._beaten_s is not None:  # else kopf has ended, and this comes late
            self._beaten_s = asyncio.get_running_loop().time()


class _NoDifferences(kopf.DiffBaseStorage):
    """Keeps kopf from copying every object twice for a difference that nobody asks for."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return cast("kopf.BodyEssence", {})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        """Write nothing."""


def _login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    if os.environ.get("KUBECONFIG") or not host:
        return kopf.login_with_kubeconfig(**kwargs)
    account = kopf.login_with_service_account(**kwargs)
    # kopf takes the API server's name, which needs a DNS; the address is given.
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    bracketed = f"[{host}]" if ":" in host else host
    return account and dataclasses.replace(account, server=f"https://{bracketed}:{port}")


def _settings(patience: Patience) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True  # one look at our group, no watch of CRDs and namespaces
    settings.networking.connect_timeout = 5
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = patience.back_offs_s
    settings.watching.reconnect_backoff = patience.shortest_pause_s
    settings.watching.server_timeout = 600
    settings.watching.chunk_size = 100  # what it lists first, as a whole, is five times its JSON
    settings.queueing.idle_timeout = 0.5  # when kopf ends by a fault it waits 5 s for the others
    settings.process.ultimate_exiting_timeout = None  # it would kill this thread with SIGKILL
    # Written by none of our handlers; were they ever, then not under another operator's name.
    settings.persistence.finalizer = "headroom.dev/watch"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="headroom.dev")
    settings.persistence.diffbase_storage = _NoDifferences()
    return settings
