"""Rejects values that no plant, client or arrival process can have."""

from __future__ import annotations


def require(holds: bool, rule: str, got: object) -> None:
    """Raise ValueError with the rule and the value of a parameter that breaks it."""
    if not holds:
        shown = f"{got:.12g}" if isinstance(got, float) else str(got)
        raise ValueError(f"{rule}; got {shown}")
