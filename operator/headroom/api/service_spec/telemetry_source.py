"""`spec.telemetry`: where the operator reads the metrics of the pods."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from headroom.api.durations import Duration
from headroom.api.text_forms import DNS_LABEL
from headroom.api.values import Rule, Value, Within

SOURCE_NAME = DNS_LABEL.pattern


class Telemetry(Value):
    """Source of the pods' metrics."""

    source: Literal["Pods", "Prometheus"] = "Pods"
    """Pods: the operator scrapes them. Prometheus: it queries a Prometheus from its settings."""
    prometheus: Annotated[str, StringConstraints(max_length=63), DNS_LABEL] | None = None
    """Name of the Prometheus in the operator's settings. Default: the one named default."""
    stale_after: Annotated[Duration, Within("2s", "100s")] | None = None
    """Age at which samples are stale, so that no replica is removed. Default: 10s for Pods, 45s for
    Prometheus, where it must exceed the scrape interval."""

    rules = (
        Rule(
            field="prometheus",
            cel="self.source == 'Prometheus' || !has(self.prometheus)",
            holds=lambda telemetry: telemetry.source == "Prometheus" or not telemetry.prometheus,
            message="telemetry.source must be Prometheus where telemetry.prometheus is set",
        ),
    )

    @property
    def source_name(self) -> str | None:
        """Name of the Prometheus to query; None where pods are scraped."""
        return (self.prometheus or "default") if self.source == "Prometheus" else None

    @property
    def stale_after_s(self) -> float:
        """Age in seconds at which samples are stale."""
        if self.stale_after is not None:
            return self.stale_after.seconds
        return 10.0 if self.source == "Pods" else 45.0
