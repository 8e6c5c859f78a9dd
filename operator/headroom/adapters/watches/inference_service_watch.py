"""Watches InferenceServices with kopf, and uses nothing else of kopf.

No timers, daemons, indexes, finalizers or patches.

When kopf ends, it cancels every task of its event loop that is younger than itself, so it runs on a
separate loop in a thread and hands events over. When it fails (after a minute of 5xx, or at once
when the CRD is deleted), it is restarted after a pause. A periodic LIST covers missed events.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Any

import kopf

from headroom.adapters.watches.kopf_settings import Patience, kopf_login, kopf_settings
from headroom.adapters.watches.restart_pause import RestartPause
from headroom.repeated_failures import RepeatedFailures

_log = logging.getLogger(__name__)

OnEvent = Callable[[str | None, dict[str, Any]], None]
"""Takes the type (None: existing object; ADDED, MODIFIED, DELETED) and the object."""

_NO_CREDENTIALS = (
    "the API server accepts no credentials of the operator (401): its ServiceAccount may have been "
    "deleted, or its KUBECONFIG may be out of date"
)
LOOK_EVERY_S = BEAT_EVERY_S = 1.0
STOP_WITHIN_S = 3.0


class _OtherNamespaces(Exception):  # noqa: N818
    """The namespaces that can be read are others: the watch restarts with them."""


class InferenceServiceWatch:
    """Watches the kind in the given namespaces, or in all."""

    def __init__(
        self,
        group: str,
        version: str,
        plural: str,
        namespaces: Sequence[str],
        *,
        login: Callable[..., kopf.ConnectionInfo | None] | None = None,
        patience: Patience | None = None,
        unlisted: Callable[[], Container[str]] = tuple,
    ) -> None:
        """`unlisted` has the namespaces that cannot be read: one of them would end kopf."""
        self._kind = (group, version, plural)
        self._namespaces = tuple(namespaces)
        self._unlisted = unlisted
        self._login = login or kopf_login
        self._patience = patience or Patience()
        self._beaten_s: float | None = None

    def silent_s(self) -> float:
        """Return the seconds since kopf's event loop last ran; 0 while there is none.

        Measured on the caller's event loop, which is the one of `run`.
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

        kopf looks for the kind once and idles if it does not exist, so the watch starts when
        `until_served` returns. `on_end` is called whenever the watch ends: until it resumes, events
        are missed.
        """
        loop = asyncio.get_running_loop()
        shortest_s, longest_s = self._patience.shortest_pause_s, self._patience.longest_pause_s
        pause, failures = RestartPause(shortest_s, longest_s), RepeatedFailures()
        while True:
            await until_served()
            begun_s = loop.time()
            fault = await self._watch_once(on_event)
            on_end()
            pause_s = pause.after(loop.time() - begun_s)
            if isinstance(fault, _OtherNamespaces):
                continue
            if pause_s == shortest_s:  # it had lasted
                failures.ends()
            why = _NO_CREDENTIALS if isinstance(fault, kopf.LoginError) else str(fault)
            if failures.is_news(why):
                words = "the watch of InferenceServices restarts, at most %g s apart: %s"
                _log.warning(words, longest_s, why)
            await asyncio.sleep(pause_s)

    async def _watch_once(self, on_event: OnEvent) -> BaseException | None:
        """Run kopf in a thread until it ends; return the exception that ended it, if any."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[BaseException | None] = loop.create_future()
        stop = threading.Event()
        namespaces = self._readable()

        def finish(fault: BaseException | None) -> None:
            if not ended.done():
                ended.set_result(fault)

        def watch() -> None:
            fault: BaseException | None = None
            try:
                asyncio.run(self._kopf(loop, on_event, stop, namespaces))
            except BaseException as error:  # noqa: BLE001  (handed to the other loop)
                fault = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(finish, fault)

        thread = threading.Thread(target=watch, name="watch", daemon=True)
        self._beaten_s = loop.time()
        thread.start()
        try:
            while self._readable() == namespaces:
                if (await asyncio.wait([ended], timeout=LOOK_EVERY_S))[0]:
                    return ended.result()
            return _OtherNamespaces()
        finally:
            self._beaten_s = None
            stop.set()
            await asyncio.wait([ended], timeout=STOP_WITHIN_S)

    async def _kopf(
        self,
        loop: asyncio.AbstractEventLoop,
        on_event: OnEvent,
        stop: threading.Event,
        namespaces: tuple[str, ...],
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
                settings=kopf_settings(self._patience),
                standalone=True,
                # Otherwise kopf looks up the user's name, which a numeric user does not have.
                identity="headroom",  # type: ignore[arg-type]
                clusterwide=not self._namespaces,
                namespaces=namespaces,
                stop_flag=stop,
            )
        finally:
            beating.cancel()
            stop.set()  # a thread of this loop waits for it

    def _readable(self) -> tuple[str, ...]:
        """Return the namespaces to watch; all of them where none can be read."""
        unlisted = self._unlisted()
        return tuple(one for one in self._namespaces if one not in unlisted) or self._namespaces

    def _beat(self) -> None:
        if self._beaten_s is not None:  # otherwise kopf has ended
            self._beaten_s = asyncio.get_running_loop().time()
