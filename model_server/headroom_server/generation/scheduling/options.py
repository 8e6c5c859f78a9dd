"""Settings of the generation scheduler. Pure."""

from __future__ import annotations

from typing import NamedTuple


class SchedulingOptions(NamedTuple):
    """Options of the scheduling of a model's requests."""

    max_waiting_requests: int = 1024
    """Waiting requests of all tenants and classes; a tenant waits with at most as many as are
    free."""
    max_waiting_tokens: int = 1 << 20
    """Tokens of waiting prompts, of all tenants and classes; shared in the same way."""
    time_per_token_s: float | None = None
    """Promised mean time between the tokens of an answer; None: as good as the load permits."""
    prefix_cache: bool = True
    max_drafts: int = 0
    """Most tokens proposed per sequence and iteration; 0: no speculation."""
    draft_model: bool = False
    """Whether the executor's draft model proposes; otherwise prompt lookup does."""
