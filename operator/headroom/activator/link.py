"""The activator's two calls to the operator: what is served, and who is held.

The first is held by the operator until there is news. The second is made at once when somebody
knocks at a service that has no replica, and repeated until the operator that decides has heard it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout

from headroom.activator.metrics import Metrics
from headroom.gateway.activation import ASK_WITHIN_S, Report, Served, read, report_body

_log = logging.getLogger(__name__)

FOLLOW_PATH, WAKE_PATH = "/v1/served", "/v1/held"
AGAIN_AFTER_S = 0.1
LONGEST_PAUSE_S = 1.0
HELD_EVERY_S = 1.0
"""While somebody is held, so that what the operator believes is true."""
_FOLLOW_WITHIN = ClientTimeout(total=ASK_WITHIN_S + 3.0, sock_connect=1.0)
_WAKE_WITHIN = ClientTimeout(total=2.0, sock_connect=0.5)


class Link:
    """Hears of the operator what is served, and tells it who is held."""

    def __init__(
        self,
        session: ClientSession,
        url: str,
        token_file: Path,
        report: Callable[[], Report],
        metrics: Metrics,
    ) -> None:
        self._session = session
        self.url = url.rstrip("/")
        self._token_file = token_file
        self._report = report
        self._metrics = metrics
        self._version = ""
        self._knocked = asyncio.Event()
        self.told = False
        """Whether the operator has said what is served."""

    def knock(self) -> None:
        """Tell the operator now who is held."""
        self._knocked.set()

    async def follow(self, served: Callable[[tuple[Served, ...]], Awaitable[None]]) -> None:
        """Take in what is served, until cancelled."""
        pause_s, complaint = AGAIN_AFTER_S, ""
        while True:
            try:
                status, body = await self._post(FOLLOW_PATH, _FOLLOW_WITHIN)
                if status == 200:
                    version, services = read(body)
                    await served(services)
                    self._version, self.told = version, True
                if status in (200, 304):
                    pause_s, complaint = AGAIN_AFTER_S, ""
                    continue
                said = f"{status} {body[:200].decode(errors='replace')}"
            except (ClientError, OSError, TimeoutError, ValueError) as error:
                said = f"{type(error).__name__}: {error}"
            if said != complaint:
                complaint = said
                _log.warning("the operator at %s cannot be asked: %s", self.url, said)
            await asyncio.sleep(pause_s)
            pause_s = min(2.0 * pause_s, LONGEST_PAUSE_S)

    async def wake(self) -> None:
        """Tell who is held, whenever there is somebody new, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(HELD_EVERY_S):
                    await self._knocked.wait()
            except TimeoutError:
                if not self._report().held:
                    continue
            self._knocked.clear()
            pause_s = AGAIN_AFTER_S
            while not await self._told_held():
                await asyncio.sleep(pause_s)
                pause_s = min(2.0 * pause_s, LONGEST_PAUSE_S)

    async def _told_held(self) -> bool:
        try:
            status, _ = await self._post(WAKE_PATH, _WAKE_WITHIN)
        except (ClientError, OSError, TimeoutError) as error:
            self._metrics.woke(type(error).__name__)
            return False
        self._metrics.woke(str(status))
        return status == 204

    async def _post(self, path: str, within: ClientTimeout) -> tuple[int, bytes]:
        token = self._token_file.read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        async with self._session.post(
            self.url + path, data=report_body(self._report()), headers=headers, timeout=within
        ) as answered:
            return answered.status, await answered.read()

    @property
    def version(self) -> str:
        """Of what was told last."""
        return self._version
