"""A gateway that accepts no connections is replaced, whatever its pod's status."""

from __future__ import annotations

from typing import Any

from headroom.controller.routing.gateway_probe import GatewayProber
from headroom.controller.routing.ready_pods import ReadyPodIndex

NAMESPACE = "headroom-system"
PORTS = frozenset({20001, 20002})


class Connects:
    """Accepts connections at some addresses and counts attempts."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = set(addresses)
        self.stood_by: set[str] = set()
        self.tried: list[tuple[str, int]] = []

    async def is_open(self, address: str, port: int) -> bool:
        self.tried.append((address, port))
        return address in self.addresses or (address in self.stood_by and port in PORTS)


def gateway(number: int, restarts: int = 0) -> dict[str, Any]:
    return {
        "metadata": {"uid": f"g{number}", "name": f"gateway-{number}", "namespace": NAMESPACE},
        "status": {
            "podIP": f"10.0.0.{number}",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"restartCount": restarts}],
        },
    }


def two() -> ReadyPodIndex:
    index = ReadyPodIndex(lambda: None)
    index.replace([gateway(1), gateway(2)])
    return index


async def led_to(prober: GatewayProber, port: int = 20001) -> str:
    return "".join(pod.address for pod in await prober.open_for("a-service", port))


async def test_closed_gateway_is_replaced_and_used_again_once_open() -> None:
    probe = Connects("10.0.0.1", "10.0.0.2")
    prober = GatewayProber(two(), NAMESPACE, probe)
    first = await led_to(prober)
    assert not await prober.look(PORTS)

    probe.addresses.remove(first)
    assert await led_to(prober) == first  # it is not asked again for each service
    assert await prober.look(PORTS)
    (other,) = probe.addresses
    assert await led_to(prober) == other
    assert not await prober.look(PORTS)

    probe.addresses.add(first)
    assert await led_to(prober) == first
    probe.addresses.clear()
    assert await prober.look(PORTS)
    assert await led_to(prober) == ""


async def test_standby_listener_is_not_taken_for_a_gateway() -> None:
    probe = Connects("10.0.0.1", "10.0.0.2")
    prober = GatewayProber(two(), NAMESPACE, probe)
    first = await led_to(prober)
    probe.addresses.remove(first)
    probe.stood_by.add(first)
    assert await prober.look(PORTS)
    assert {await led_to(prober)} == probe.addresses


async def test_probe_connects_to_one_used_port_per_gateway() -> None:
    probe = Connects("10.0.0.1", "10.0.0.2")
    index = two()
    prober = GatewayProber(index, NAMESPACE, probe)
    gates = {await led_to(prober, 20001), await led_to(prober, 20002)}
    assert len(gates) == 1
    probe.tried.clear()
    assert not await prober.look(PORTS)
    assert len(probe.tried) == 1

    probe.addresses.clear()
    assert not await prober.look(frozenset())  # shut, as it should be
    probe.addresses |= gates
    await led_to(prober)
    index.replace([])
    assert not await prober.look(PORTS)


async def test_restarted_gateway_is_probed_again() -> None:
    probe = Connects("10.0.0.1")
    index = ReadyPodIndex(lambda: None)
    index.replace([gateway(1)])
    prober = GatewayProber(index, NAMESPACE, probe)
    assert await led_to(prober) == "10.0.0.1"
    probe.addresses.clear()
    index.replace([gateway(1, restarts=1)])
    assert await led_to(prober) == ""
