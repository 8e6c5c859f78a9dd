"""Why a page of metrics gives no sample. A page is read wholly or not at all."""

# ruff: noqa: N818  (named by what the caller does next)

from __future__ import annotations


class TelemetryError(ValueError):
    """What was exposed cannot be relied on."""


class MalformedExposition(TelemetryError):
    """A line is not Prometheus text."""

    def __init__(self, line: int, rule: str, received: str) -> None:
        super().__init__(f"line {line}: {rule}: {received[:80]!r}")
        self.line = line
        self.rule = rule


class MissingMetric(TelemetryError):
    """A metric that the decision needs is not on the page."""

    def __init__(self, metric: str, detail: str) -> None:
        super().__init__(f"{metric} is missing: {detail}")
        self.metric = metric


class InvalidMetric(TelemetryError):
    """A metric has a value that it cannot have."""

    def __init__(self, metric: str, rule: str, received: object) -> None:
        super().__init__(f"{metric} {rule}: received {received}")
        self.metric = metric
        self.rule = rule


class RepeatedPage(TelemetryError):
    """The page was written before the last one, or is that one: something keeps and repeats it."""

    def __init__(self, metric: str, received: float) -> None:
        super().__init__(
            f"{metric} is still {received:g}: not the server but something before it, a proxy or "
            "a cache, answers for it with an old page"
        )
