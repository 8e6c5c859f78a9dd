"""What every peer is made of: the service it scales, its knobs as fields, its name in the reports.

A knob is a field with a number (or a choice) for a default and its unit in its name. Targets that
depend on the server are given in batches, so that one setting means the same on every plant: one
batch is what a replica executes at once, slots x max_batch requests (its *places*).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from headroom.scaling.values import Policy
from headroom.simulator.autoscaler import Truth, View, Wish

Knob = float | str
"""A number, or the word of a choice."""


@dataclass(kw_only=True)
class Peer(ABC):
    """An autoscaler of one service; subclasses add knobs and `evaluate`."""

    kind: ClassVar[str]
    may_be_zero: ClassVar[frozenset[str]] = frozenset()
    """Knobs for which 0 is a setting; all others are above 0."""

    truth: Truth
    """Of this only bounds and perfect profiles use more than the spec."""
    period_s: float = 15.0
    scrape_s: float = 15.0
    """inf for what reads no metrics."""

    def __post_init__(self) -> None:
        """Raise ValueError for a knob that is out of its range."""
        for knob, value in self.settings().items():
            if isinstance(value, str):
                continue
            zero = knob in self.may_be_zero or isinstance(value, bool)
            never = math.isinf(value) and value == self.knobs()[knob]
            if not (math.isfinite(value) or never) or value < 0 or (value == 0 and not zero):
                rule = ">= 0" if zero else "> 0"
                raise ValueError(f"{self.kind}: {knob} is a number {rule}, received {value}")

    @classmethod
    def knobs(cls) -> Mapping[str, Knob]:
        """Return every knob with its default."""
        return {
            field.name: field.default
            for field in fields(cls)
            if field.init and isinstance(field.default, (bool, int, float, str))
        }

    def settings(self) -> Mapping[str, Knob]:
        """Return every knob with its value."""
        return {knob: getattr(self, knob) for knob in self.knobs()}

    @property
    def name(self) -> str:
        """The kind, and the knobs that are not at their default."""
        defaults = self.knobs()
        changed = [
            f"{knob}={value}" if isinstance(value, str) else f"{knob}={value:g}"
            for knob, value in self.settings().items()
            if value != defaults[knob]
        ]
        return f"{self.kind}({', '.join(changed)})" if changed else self.kind

    @property
    def policy(self) -> Policy:
        """What the service promises and permits."""
        return self.truth.spec.policy

    @property
    def places(self) -> int:
        """Requests that one replica executes at once."""
        return self.truth.spec.server.slots * self.truth.spec.server.max_batch

    @abstractmethod
    def evaluate(self, view: View) -> Wish:
        """Return what it wants now."""
