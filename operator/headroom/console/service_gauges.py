"""Gauges of services: a number each, which is rendered when somebody asks.

A gauge of prometheus_client has a lock and 0.9 kB, and a service has twenty of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

_SERVICE = ("namespace", "name")
Owner = tuple[str, str]
"""Namespace and name."""


class ServiceGauges(Collector):
    """The last value of each gauge of each service."""

    def __init__(self, families: Mapping[str, tuple[str, str]]) -> None:
        """Take by name what each means, and its label beside namespace and name, if any."""
        self._families = dict(families)
        self._values: dict[Owner, dict[tuple[str, str], float]] = {}
        self._keys: dict[tuple[str, str], tuple[str, str]] = {}
        """Names and labels, which services share."""

    def show(self, owner: Owner, name: str, value: float | None, label: str = "") -> None:
        """Set a gauge; None takes it away."""
        key = (name, label)
        if value is None:
            self._values.get(owner, {}).pop(key, None)
        else:
            self._values.setdefault(owner, {})[self._keys.setdefault(key, key)] = value

    def forget(self, owner: Owner) -> None:
        """Drop all of a service."""
        self._values.pop(owner, None)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Give the families without their values."""
        for name, (text, label) in self._families.items():
            labels = (*_SERVICE, label) if label else _SERVICE
            yield GaugeMetricFamily(name, text, labels=labels)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give the families with the values of all services."""
        families = {family.name: family for family in self.describe()}
        for owner, values in self._values.items():
            for (name, label), value in values.items():
                families[name].add_metric((*owner, label) if label else owner, value)
        yield from families.values()
