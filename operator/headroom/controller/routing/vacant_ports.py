"""Finds ports at which no gateway listens, while services of some namespaces are unknown.

A gateway keeps the listeners of such services. A new service at one of their ports would send its
requests to them, so a port is given only after no gateway has accepted a connection at it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from headroom.controller.routing.ports import Probe
from headroom.controller.routing.ready_pods import ReadyPodIndex


class VacantPorts:
    """Ports that were tried at every gateway."""

    def __init__(
        self, gates: ReadyPodIndex, gateway_namespace: str, probe: Probe, unread: Collection[str]
    ) -> None:
        """`unread` are the namespaces whose services are unknown now."""
        self._gates = gates
        self._gateway_namespace = gateway_namespace
        self._probe = probe
        self._unread = unread
        self._found: dict[int, bool] = {}
        self._asked: set[int] = set()

    def is_vacant(self, port: int) -> bool | None:
        """Return whether a port may be given; None: it has to be tried first."""
        if not self._unread:
            self._found.clear()
            return True
        if port not in self._found:
            self._asked.add(port)
        return self._found.get(port)

    async def look(self) -> bool:
        """Try the ports that were asked about; return whether any was tried."""
        gateways = self._gates.ready(self._gateway_namespace)
        asked, self._asked = self._asked, set()
        if not asked or not gateways:
            return False
        for port in asked:
            answers = await asyncio.gather(
                *(self._probe.is_open(one.address, port) for one in gateways)
            )
            self._found[port] = not any(answers)
        return True
