"""Rules for settings that hold for models that batch."""

from __future__ import annotations

from collections.abc import Sequence

from headroom_server.engine import LoadError
from headroom_server.runtime.caches import has_class
from headroom_server.runtime.store import ModelSource
from headroom_server.settings import Settings


def check_applicable(settings: Settings, sources: Sequence[ModelSource]) -> None:
    """Check that no cache is asked for that would have no effect on models that batch.

    Raises:
        LoadError: one is; it says what to do instead.
    """
    classes = any(has_class(settings, source) for source in sources)
    for value, key, rule in (
        (settings.semantic_cache_url, "SEMANTIC_CACHE_URL", "unless the model generates text"),
        (
            0 if classes else settings.feature_cache_bytes,
            "FEATURE_CACHE_BYTES",
            "unless a model generates text or is a class with features",
        ),
    ):
        if value:
            raise LoadError(
                f"HEADROOM_{key} must be unset {rule}; got {value!s:.200}: HEADROOM_CACHE_BYTES "
                "keeps the answers to equal requests"
            )
