"""An address for each pod, from which its service can be read back.

All of 127.0.0.0/8 is this machine, so one listener answers for all of them.
"""

from __future__ import annotations

from collections import defaultdict

from reliability.testbed.admin import Object
from reliability.testbed.fake_kubelet import SERVICE_LABEL

PODS_OF_A_SERVICE = 8
_FIRST = 1 << 16
"""127.1.0.0 and on: below are the loopback's own."""
MOST_SERVICES = ((1 << 24) - _FIRST) // PODS_OF_A_SERVICE


def service_name(number: int) -> str:
    """Name the service of that number."""
    return f"s{number:05d}"


def service_number(name: str) -> int:
    """Return the number of a service by its name."""
    return int(name[1:])


def address_of(service: int, pod: int) -> str:
    """Return the address of a pod (0 to 7) of a service."""
    number = _FIRST + service * PODS_OF_A_SERVICE + pod
    return f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def service_at(address: str) -> int:
    """Return the number of the service whose pod has the address."""
    _, high, middle, low = map(int, address.split("."))
    return ((high << 16 | middle << 8 | low) - _FIRST) // PODS_OF_A_SERVICE


class ServiceAddresses:
    """Gives the pods of each service its lowest free addresses."""

    def __init__(self) -> None:
        self._slots: dict[int, dict[str, int]] = defaultdict(dict)

    def assign(self, pod: Object) -> str:
        """Return the address of a pod that starts."""
        number, slots = self._slots_of(pod)
        taken = set(slots.values())
        slot = next(slot for slot in range(len(taken) + 1) if slot not in taken)
        return address_of(number, slots.setdefault(pod["metadata"]["uid"], slot))

    def release(self, pod: Object) -> None:
        """Free the address of a deleted pod."""
        self._slots_of(pod)[1].pop(pod["metadata"]["uid"], None)

    def _slots_of(self, pod: Object) -> tuple[int, dict[str, int]]:
        number = service_number(pod["metadata"]["labels"][SERVICE_LABEL])
        return number, self._slots[number]
