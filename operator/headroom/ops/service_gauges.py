"""Figures of services: one number per series, rendered as Prometheus text on request.

A gauge of prometheus_client has a lock and takes 0.9 kB, and a service has twenty of them. For a
thousand services its renderer blocks the event loop for 0.15 s; this one takes a tenth of that.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

Owner = tuple[str, str]
"""Namespace and name, which need no escaping: they have only letters, digits, `-` and `.`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Metadata of one metric."""

    text: str
    label: str = ""
    """Third label besides namespace and inferenceservice, if any."""
    kind: str = "gauge"


class ServiceGauges:
    """The last value of each series of each service."""

    def __init__(self, families: Mapping[str, Family]) -> None:
        """Take the families by name, in the order of the page."""
        self._families = dict(families)
        self._values: dict[Owner, dict[tuple[str, str], float]] = {}
        self._keys: dict[tuple[str, str], tuple[str, str]] = {}
        """Names and labels, shared by services."""

    def show(self, owner: Owner, name: str, value: float | None, label: str = "") -> None:
        """Set a figure; None removes it."""
        if value is None:
            self._values.get(owner, {}).pop((name, label), None)
        else:
            self._of(owner)[self._key(name, label)] = value

    def clear(self, owner: Owner, name: str) -> None:
        """Remove a figure with every label."""
        values = self._values.get(owner, {})
        for key in [key for key in values if key[0] == name]:
            del values[key]

    def clear_gauges(self, owner: Owner) -> None:
        """Remove all figures but counters."""
        values = self._values.get(owner, {})
        for key in [key for key in values if self._families[key[0]].kind == "gauge"]:
            del values[key]

    def count(self, owner: Owner, name: str, more: float, label: str = "") -> None:
        """Add to a figure, which starts at 0."""
        key, values = self._key(name, label), self._of(owner)
        values[key] = values.get(key, 0.0) + more

    def forget(self, owner: Owner) -> None:
        """Drop the series of a service."""
        self._values.pop(owner, None)

    def page(self) -> bytes:
        """Render all series, text format 0.0.4."""
        lines: dict[str, list[str]] = defaultdict(list)
        for (namespace, service), values in self._values.items():
            owner = f'{{inferenceservice="{service}",namespace="{namespace}"'
            for (name, label), value in values.items():
                more = f',{self._families[name].label}="{label}"' if label else ""
                lines[name].append(f"{name}{owner}{more}}} {_number(value)}\n")
        return "".join(
            text for name in self._families for text in (self._head(name), *lines[name])
        ).encode()

    def _head(self, name: str) -> str:
        family = self._families[name]
        return f"# HELP {name} {family.text}\n# TYPE {name} {family.kind}\n"

    def _of(self, owner: Owner) -> dict[tuple[str, str], float]:
        return self._values.setdefault(owner, {})

    def _key(self, name: str, label: str) -> tuple[str, str]:
        key = (name, label)
        return self._keys.setdefault(key, key)


def _number(value: float) -> str:
    """Render a number as Go parses it."""
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
