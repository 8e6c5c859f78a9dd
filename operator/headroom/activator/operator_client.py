"""The activator's client of the operator: follows the services, reports held requests.

The first call is a long poll that the operator answers when a service changes. The second is sent
at once when a request arrives for a service without a replica, and repeated until the leader
confirms it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout

from headroom.activator.client_tls import ClientTls
from headroom.activator.metrics import Metrics
from headroom.gateway.activator_messages import ASK_WITHIN_S, Report, Served, read, report_body

_log = logging.getLogger(__name__)

FOLLOW_PATH, HELD_PATH = "/v1/served", "/v1/held"
AGAIN_AFTER_S = 0.1
LONGEST_PAUSE_S = 1.0
HELD_EVERY_S = 1.0
"""Interval of reports while requests are held, so that the operator's counts stay current."""
_FOLLOW_WITHIN = ClientTimeout(total=ASK_WITHIN_S + 3.0, sock_connect=1.0)
_HELD_WITHIN = ClientTimeout(total=2.0, sock_connect=0.5)


class OperatorClient:
    """Receives the services from the operator and reports held requests to it."""

    def __init__(
        self,
        session: ClientSession,
        url: str,
        token_file: Path,
        report: Callable[[], Report],
        metrics: Metrics,
        tls: ClientTls | None = None,
    ) -> None:
        self._session = session
        self._tls = tls
        self.url = url.rstrip("/")
        self._token_file = token_file
        self._report = report
        self._metrics = metrics
        self._version = ""
        self._report_due = asyncio.Event()
        self.synced = False
        """Whether the operator has sent the services."""

    def report_now(self) -> None:
        """Send a report to the operator at once."""
        self._report_due.set()

    async def follow(self, served: Callable[[tuple[Served, ...]], Awaitable[None]]) -> None:
        """Call `served` with the services whenever they change, until cancelled."""
        pause_s, complaint = AGAIN_AFTER_S, ""
        services: tuple[Served, ...] = ()
        while True:
            try:
                status, body = await self._post(FOLLOW_PATH, _FOLLOW_WITHIN)
                if status == 200:
                    sent = read(body)
                    services = sent.after(services)
                    await served(services)
                    self._version, self.synced = sent.version, True
                if status in (200, 304):
                    pause_s, complaint = AGAIN_AFTER_S, ""
                    continue
                said = f"{status} {body[:200].decode(errors='replace')}"
            except (ClientError, OSError, TimeoutError, ValueError) as error:
                said = f"{type(error).__name__}: {error}"
            if said != complaint:
                complaint = said
                _log.warning("cannot get the services from the operator at %s: %s", self.url, said)
            await asyncio.sleep(pause_s)
            pause_s = min(2.0 * pause_s, LONGEST_PAUSE_S)

    async def report_held(self) -> None:
        """Report held requests on request and periodically, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(HELD_EVERY_S):
                    await self._report_due.wait()
            except TimeoutError:
                if not self._report().held:
                    continue
            self._report_due.clear()
            pause_s = AGAIN_AFTER_S
            while not await self._send_held():
                await asyncio.sleep(pause_s)
                pause_s = min(2.0 * pause_s, LONGEST_PAUSE_S)

    async def _send_held(self) -> bool:
        try:
            status, _ = await self._post(HELD_PATH, _HELD_WITHIN)
        except (ClientError, OSError, TimeoutError) as error:
            self._metrics.activated(type(error).__name__)
            return False
        self._metrics.activated(str(status))
        return status == 204

    async def _post(self, path: str, within: ClientTimeout) -> tuple[int, bytes]:
        token = self._token_file.read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        tls = self._tls
        async with self._session.post(
            self.url + path,
            data=report_body(self._report()),
            headers=headers,
            timeout=within,
            ssl=True if tls is None else tls.context(),
            server_hostname=None if tls is None else tls.operator_name,
        ) as answered:
            return answered.status, await answered.read()

    @property
    def version(self) -> str:
        """Version of the services received last."""
        return self._version
