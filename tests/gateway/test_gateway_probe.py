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
    book = ReadyPodIndex(lambda: None)
    book.replace([gateway(1), gateway(2)])
    return book


async def led_to(doors: GatewayProber, port: int = 20001) -> str:
    return "".join(pod.address for pod in await doors.open_for("a-service", port))


async def test_closed_gateway_is_replaced_and_used_again_once_open() -> None:
    probe = Connects("10.0.0.1", "10.0.0.2")
    doors = GatewayProber(two(), NAMESPACE, probe)
    first = await led_to(doors)
    assert not await doors.look(PORTS)

    probe.addresses.remove(first)
    assert await led_to(doors) == first  # it is not asked again for each service
    assert await doors.look(PORTS)
    (other,) = probe.addresses
    assert await led_to(doors) == other
    assert not await doors.look(PORTS)

    probe.addresses.add(first)
    assert await led_to(doors) == first
    probe.addresses.clear()
    assert await doors.look(PORTS)
    assert await led_to(doors) == ""


async def test_standby_listener_is_not_taken_for_a_gateway() -> None:
    probe = Connects("10.0.0.1", "10.0.0.2")
    doors = GatewayProber(two(), NAMESPACE, probe)
    first = await led_to(doors)
    probe.addresses.remove(first)
    probe.stood_by.add(first)
    assert await doors.look(PORTS)
    assert {await led_to(doors)} == probe.addresses


async def test_probe_connects_to_one_used_port_per_gateway() -> None:
    probe = Connects("10.0.0.1", "10.0.0.2")
    book = two()
    doors = GatewayProber(book, NAMESPACE, probe)
    gates = {await led_to(doors, 20001), await led_to(doors, 20002)}
    assert len(gates) == 1
    probe.tried.clear()
    assert not await doors.look(PORTS)
    assert len(probe.tried) == 1

    probe.addresses.clear()
    assert not await doors.look(frozenset())  # shut, as it should be
    probe.addresses |= gates
    await led_to(doors)
    book.replace([])
    assert not await doors.look(PORTS)


async def test_restarted_gateway_is_probed_again() -> None:
    probe = Connects("10.0.0.1")
    book = ReadyPodIndex(lambda: None)
    book.replace([gateway(1)])
    doors = GatewayProber(book, NAMESPACE, probe)
    assert await led_to(doors) == "10.0.0.1"
    probe.addresses.clear()
    book.replace([gateway(1, restarts=1)])
    assert await led_to(doors) == ""
