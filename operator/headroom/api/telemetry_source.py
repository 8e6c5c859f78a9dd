"""`spec.telemetry`: where the metrics of the pods are read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from headroom.api.durations import Duration
from headroom.api.values import Rule, Value, Within

SOURCE_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


class Telemetry(Value):
    """Where the metrics of the pods are read."""

    source: Literal["Pods", "Prometheus"] = "Pods"
    """Pods scrapes them directly; Prometheus asks one that the operator's settings name."""
    prometheus: Annotated[str, StringConstraints(max_length=63, pattern=SOURCE_NAME)] | None = None
    """Name of the Prometheus in the operator's settings; without it the one called default."""
    stale_after: Annotated[Duration, Within("2s", "100s")] | None = None
    """Age at which samples are out of date, so that nothing is removed; without it 10s of Pods, 45s
    of Prometheus, where it has to be above the scrape interval."""

    rules = (
        Rule(
            field="prometheus",
            cel="self.source == 'Prometheus' || !has(self.prometheus)",
            holds=lambda telemetry: telemetry.source == "Prometheus" or not telemetry.prometheus,
            message="telemetry.prometheus needs telemetry.source Prometheus",
        ),
    )

    @property
    def source_name(self) -> str | None:
        """Name of the Prometheus to ask; None where pods are scraped."""
        return (self.prometheus or "default") if self.source == "Prometheus" else None

    @property
    def stale_after_s(self) -> float:
        """Age in seconds at which samples are out of date."""
        if self.stale_after is not None:
            return self.stale_after.seconds
        return 10.0 if self.source == "Pods" else 45.0
