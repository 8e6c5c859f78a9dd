"""Times: seconds since the epoch in decisions, RFC 3339 in Kubernetes objects."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(epoch_s: float) -> str:
    """Render whole seconds in UTC, as metav1.Time does."""
    return datetime.fromtimestamp(int(epoch_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch_s(text: str) -> float:
    """Read metav1.Time or MicroTime; raise ValueError naming the rule and the text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(
            f"a time must be RFC 3339 with a zone, such as 2026-01-31T12:00:00Z; got {text!r:.60}"
        )
    return moment.timestamp()
