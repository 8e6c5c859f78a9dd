"""What an autoscaler's name says: its family, and whether it is a bound rather than a peer."""

from __future__ import annotations

OURS = "headroom"
CLAIRVOYANT = "clairvoyant"
"""The yardstick of cost: knows all arrivals, pays the cold start."""
BOUNDS = frozenset({CLAIRVOYANT, "oracle", "ideal-reactive"})
"""They know what no autoscaler can, so they stand beside the front and not on it."""


def family(autoscaler: str) -> str:
    """Return the name without its settings: "hpa target=4" and "hpa(4)" are hpa."""
    return autoscaler.replace("(", " ").replace("[", " ").replace(",", " ").split(" ", 1)[0]


def is_bound(autoscaler: str) -> bool:
    """Whether this one knows what no autoscaler can."""
    return family(autoscaler) in BOUNDS
