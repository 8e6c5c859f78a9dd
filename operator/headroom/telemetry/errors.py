"""Errors of a page of metrics. A page is read completely or not at all."""

# ruff: noqa: N818  (named by what the caller does next)

from __future__ import annotations


class TelemetryError(ValueError):
    """The exposed metrics cannot be trusted."""


class MalformedExposition(TelemetryError):
    """A line is not Prometheus text."""

    def __init__(self, line: int, rule: str, received: str) -> None:
        super().__init__(f"line {line}: {rule}; got {received[:80]!r}")
        self.line = line
        self.rule = rule


class MissingMetric(TelemetryError):
    """The page lacks a metric that the decision needs."""

    def __init__(self, metric: str, detail: str) -> None:
        super().__init__(f"{metric} is missing: {detail}")
        self.metric = metric


class InvalidMetric(TelemetryError):
    """A metric has an impossible value."""

    def __init__(self, metric: str, rule: str, received: object) -> None:
        super().__init__(f"{metric:.200} {rule}; got {str(received)[:200]}")
        self.metric = metric
        self.rule = rule


class RepeatedPage(TelemetryError):
    """The page is not newer than the last one: a cache repeats it."""

    def __init__(self, metric: str, received: float) -> None:
        super().__init__(
            f"{metric} must increase with each page; got {received:g} again: a proxy or a cache in "
            "front of the server repeats an old page"
        )
