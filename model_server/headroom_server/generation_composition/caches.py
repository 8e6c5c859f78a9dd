"""Builds the caches of a generating model from the settings."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

from headroom_server.caching.features import CachedEmbedder, FeatureCache
from headroom_server.caching.generation_cache import Embed, GenerationCache
from headroom_server.caching.store import GuardedStore
from headroom_server.engine import LoadError
from headroom_server.runtime.caches import (
    embedding_identity,
    feature_cache_of,
    generation_cache_of,
    second_level_of,
)
from headroom_server.settings import Settings


class Caches(NamedTuple):
    """The caches of a generating model, and the second level that they share."""

    answers: GenerationCache | None
    features: FeatureCache | None
    second_level: GuardedStore | None


def build_caches(settings: Settings) -> Caches:
    """Return the caches.

    Raises:
        LoadError: a setting of the cache is invalid.
        ModuleNotFoundError: a library that it needs is not installed.
    """
    if settings.semantic_cache_url and not settings.cache_bytes:
        raise LoadError(
            "HEADROOM_CACHE_BYTES must be above 0 with HEADROOM_SEMANTIC_CACHE_URL; got 0"
        )
    second_level = second_level_of(settings)
    features = feature_cache_of(settings, second_level)
    answers = generation_cache_of(settings, second_level, _embedder(settings, features))
    return Caches(answers, features, second_level)


def _embedder(settings: Settings, features: FeatureCache | None) -> Embed | None:
    if not settings.semantic_cache_url:
        return None
    from headroom_server.generation.text.tokenizer_folder import load_tokenizer  # noqa: PLC0415
    from headroom_server.runtime.embedding import RemoteEmbedder  # noqa: PLC0415

    tokenizer = load_tokenizer(Path(settings.semantic_cache_tokenizer))
    try:
        remote = RemoteEmbedder(
            settings.semantic_cache_url, partial(tokenizer.encode, special=True)
        )
    except ValueError as error:
        raise LoadError(str(error)) from error
    if features is not None:
        return CachedEmbedder(features, embedding_identity(settings), remote)
    return lambda text, _tenant: remote(text)
