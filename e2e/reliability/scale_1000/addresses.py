"""PURE. An address of its own for every pod: the service and the pod are read back from it.

All of 127.0.0.0/8 is this machine, so one listener answers for all of them.
"""

from __future__ import annotations

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
    """Give the address of a pod (0 to 7) of a service."""
    number = _FIRST + service * PODS_OF_A_SERVICE + pod
    return f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def service_at(address: str) -> int:
    """Return the number of the service whose pod has the address."""
    _, high, middle, low = map(int, address.split("."))
    return ((high << 16 | middle << 8 | low) - _FIRST) // PODS_OF_A_SERVICE
