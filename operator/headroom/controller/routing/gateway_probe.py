"""Finds the gateways that accept connections by connecting, because readiness lags by a second.

It probes a port of Envoy itself: at a service's port a standby listener may accept while Envoy is
down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set

from headroom.controller.routing import port_numbers
from headroom.controller.routing.ports import Probe
from headroom.controller.routing.ready_pods import ReadyPod, ReadyPodIndex
from headroom.gateway.bootstrap.configuration import OPS_PORT

_OpenPort = tuple[str, int, int]
"""UID of a gateway, its restarts, and a port at which it accepts connections."""


class GatewayProber:
    """The ports at which gateways have accepted a connection."""

    def __init__(self, gates: ReadyPodIndex, namespace: str, probe: Probe) -> None:
        self._gates = gates
        self._namespace = namespace
        self._probe = probe
        self._open: set[_OpenPort] = set()

    async def open_for(self, uid: str, port: int) -> list[ReadyPod]:
        """Return the gateway that accepts connections for a service; empty if there is none.

        The first by its own order is enough: the others are used only while that one is down.
        """
        pods = self._gates.ready(self._namespace)
        for pod in sorted(pods, key=lambda pod: port_numbers.preference(uid, pod.name)):
            one = (pod.uid, pod.restarts, port)
            if one in self._open or await self.accepts(pod.address, port):
                self._open.add(one)
                return [pod]
        return []

    async def accepts(self, address: str, port: int) -> bool:
        """Return whether a gateway accepts connections for a service, even one being removed."""
        is_open = self._probe.is_open
        return await is_open(address, OPS_PORT) and await is_open(address, port)

    async def look(self, ports: Set[int]) -> bool:
        """Probe gateways with open ports, and forget closed ones; return if any was closed.

        `ports` are those that services have now: the others are shut because they are not needed.
        """
        pods = {(pod.uid, pod.restarts): pod for pod in self._gates.ready(self._namespace)}
        self._open = {one for one in self._open if one[:2] in pods and one[2] in ports}
        tried = {one[:2] for one in self._open}
        answers = await asyncio.gather(
            *(self._probe.is_open(pods[gate].address, OPS_PORT) for gate in tried)
        )
        shut = {gate for gate, is_open in zip(tried, answers, strict=True) if not is_open}
        self._open = {one for one in self._open if one[:2] not in shut}
        return bool(shut)
