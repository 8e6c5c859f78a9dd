"""Times at which a rejected manifest or replica count is sent again to the API server."""

from __future__ import annotations

from headroom.errors import ClusterError, Unavailable

REFUSED_AGAIN_SHARE, REFUSED_AGAIN_S = 1.0 / 15.0, (4.0, 60.0)
"""A rejected manifest is sent again after this share of the time since its first rejection: every
4 s in the first minute, at most once a minute later. A hiccup ends soon, a quota changes slowly.
With many services the other children are tried less often, as they are checked less often."""


def asks_to_wait(error: ClusterError) -> bool:
    """Return whether the API server has asked all of the operator's requests to wait."""
    return isinstance(error, Unavailable) and error.retry_after_s > 0.0


def sent_again_after_s(refused_for_s: float, slower: float = 1.0) -> float:
    """Return how long to wait, for a manifest first rejected `refused_for_s` before."""
    shortest_s, longest_s = REFUSED_AGAIN_S
    return max(shortest_s * slower, min(longest_s * slower, REFUSED_AGAIN_SHARE * refused_for_s))
