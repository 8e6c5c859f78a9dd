"""The requests of each service that all gateways counted since this process started. Pure.

Each gateway's counters are one series: its first page is a baseline, and a counter that falls means
that the gateway restarted. A request counts when it arrives, as it does at the replicas, and not
when it ends: answers may take minutes. A service's totals are as old as the page of the gateway
that was read least recently, because any gateway may have received its requests: a failed read is
never zero.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from headroom.gateway.listener.access_counts import ServiceCounters

NOTHING = ServiceCounters()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTotals:
    """The requests of one service, over all gateways."""

    time_s: float
    """Time of the page of the gateway read least recently, or since when it is known."""
    complete: bool
    """Whether every gateway was read at least once."""
    counted: ServiceCounters = NOTHING
    failed: tuple[str, ...] = ()
    """Gateways whose last page could not be read, with why."""


@dataclass(slots=True)
class _Gateway:
    since_s: float
    read_s: float | None = None
    page: Mapping[str, ServiceCounters] = field(default_factory=dict)
    trouble: str = ""


class GatewayCounters:
    """Adds up pages as they come."""

    def __init__(self) -> None:
        self._gateways: dict[str, _Gateway] = {}
        self._sums: dict[str, ServiceCounters] = {}

    def set_gateways(self, gateways: Collection[str], now_s: float) -> None:
        """Process which gateways there are; the counts of those that have gone stay counted."""
        self._gateways = {
            one: self._gateways.get(one) or _Gateway(since_s=now_s) for one in sorted(gateways)
        }

    def add_page(self, gateway: str, page: Mapping[str, ServiceCounters], now_s: float) -> None:
        """Process a page of one of them."""
        known = self._gateways.get(gateway)
        if known is None:
            return
        page = {key: _without_dip(known.page.get(key, NOTHING), one) for key, one in page.items()}
        if known.read_s is not None:
            for key, after in page.items():
                before = known.page.get(key, NOTHING)
                if after != before:
                    self._sums[key] = _plus(self._sums.get(key, NOTHING), _added(before, after))
        known.read_s, known.page, known.trouble = now_s, page, ""
        shown = {key for one in self._gateways.values() for key in one.page}
        self._sums = {key: one for key, one in self._sums.items() if key in shown}

    def mark_failed(self, gateway: str, why: str) -> None:
        """Note that a gateway could not be read."""
        if gateway in self._gateways:
            self._gateways[gateway].trouble = why

    def of(self, key: str) -> ServiceTotals | None:
        """Return the gateways' counts of a service; None where there is no gateway."""
        gateways = self._gateways.values()
        if not gateways:
            return None
        active = sum(one.page.get(key, NOTHING).active for one in gateways)
        total = self._sums.get(key, NOTHING)
        return ServiceTotals(
            time_s=min(one.since_s if one.read_s is None else one.read_s for one in gateways),
            complete=all(one.read_s is not None for one in gateways),
            counted=replace(total, active=active),
            failed=tuple(
                f"{name}: {one.trouble}" for name, one in self._gateways.items() if one.trouble
            ),
        )


def _without_dip(before: ServiceCounters, after: ServiceCounters) -> ServiceCounters:
    """Return the page with no fewer arrivals than before, unless the gateway restarted."""
    if after.arrived >= before.arrived or after.ended < before.ended:
        return after
    return replace(after, arrived=before.arrived)


def _added(before: ServiceCounters, after: ServiceCounters) -> ServiceCounters:
    """Return the increase; everything if a counter fell, because the gateway restarted."""
    answered = dict(after.answered)
    for one, count in before.answered.items():
        answered[one] = answered.get(one, 0) - count
    numbers = {name: getattr(after, name) - getattr(before, name) for name in _NUMBERS}
    if min(numbers.values()) < 0 or min(answered.values(), default=0) < 0:
        return after
    return ServiceCounters(answered=answered, **numbers)


def _plus(one: ServiceCounters, other: ServiceCounters) -> ServiceCounters:
    answered = dict(one.answered)
    for each, count in other.answered.items():
        if count:
            answered[each] = answered.get(each, 0) + count
    numbers = {name: getattr(one, name) + getattr(other, name) for name in _NUMBERS}
    return ServiceCounters(answered=answered, **numbers)


_NUMBERS = ("arrived", "ended", "missed", "rejected")
