"""Builds response caches from settings and model descriptions."""

from __future__ import annotations

import time
from pathlib import Path

from headroom_server.caching.cache import Cache
from headroom_server.caching.features import FeatureCache
from headroom_server.caching.generation_cache import Embed, GenerationCache
from headroom_server.caching.levels import LevelOptions
from headroom_server.caching.seal import Seal
from headroom_server.caching.sealed_store import SealedStore
from headroom_server.caching.store import GuardedStore
from headroom_server.engine import LoadError
from headroom_server.runtime.store import ModelSource
from headroom_server.settings import Settings


def second_level_of(settings: Settings) -> GuardedStore | None:
    """Return the second level that all models share; None without HEADROOM_CACHE_REDIS_URL.

    Raises:
        LoadError: the URL is invalid, or key or password are missing; the message omits the URL,
            since it may contain a password.
        ModuleNotFoundError: the Redis client is not installed.
    """
    if not settings.cache_redis_url:
        return None
    from headroom_server.caching.redis_store import RedisStore  # noqa: PLC0415

    try:
        store = RedisStore(settings.cache_redis_url)
    except ValueError as error:
        raise LoadError(
            "HEADROOM_CACHE_REDIS_URL must be redis://[user:password@]host[:port][/database], "
            "rediss:// or unix:// with a path"
        ) from error
    if not (store.is_protected or settings.cache_redis_trusted):
        raise LoadError(
            "HEADROOM_CACHE_REDIS_URL must have a password, or any client in the network reads and "
            f"replaces answers; {_OR_TRUSTED}"
        )
    if not settings.cache_redis_key and settings.cache_redis_trusted:
        return GuardedStore(store, time.monotonic)
    try:
        seal = Seal(settings.cache_redis_key)
    except ValueError as error:
        raise LoadError(
            f"HEADROOM_CACHE_REDIS_KEY {error}. Take it from a Secret; {_OR_TRUSTED}"
        ) from error
    return GuardedStore(SealedStore(store, seal, time.time), time.monotonic)


_OR_TRUSTED = "to use Redis as it is, set HEADROOM_CACHE_REDIS_TRUSTED=true"


def cache_of(
    settings: Settings,
    source: ModelSource,
    second_level: GuardedStore | None,
) -> Cache | None:
    """Return one model's cache; None if it caches nothing."""
    described = source.description
    max_bytes, ttl_s = settings.cache_bytes, settings.cache_ttl_s
    if described is not None and described.cache is not None:
        max_bytes, ttl_s = described.cache.bytes, described.cache.ttl_s or ttl_s
    if max_bytes == 0:
        return None
    options = LevelOptions(max_bytes, ttl_s, time.monotonic, second_level)
    return Cache(identity_of(settings, source), options)


def has_class(settings: Settings, source: ModelSource) -> bool:
    """Return whether a class of the user computes, which alone may have features."""
    one = source.description
    if settings.engine == "emulated" or (one is not None and one.engine == "emulated"):
        return False
    return bool(settings.model_class) if one is None else one.is_class


def input_cache_of(
    settings: Settings,
    source: ModelSource,
    second_level: GuardedStore | None,
) -> Cache | None:
    """Return the cache of the features of one model's class; None if it has none."""
    if settings.feature_cache_bytes == 0 or not has_class(settings, source):
        return None
    options = _feature_levels(settings, second_level)
    return Cache(f"{identity_of(settings, source)} features", options)


def generation_cache_of(
    settings: Settings, second_level: GuardedStore | None, embed: Embed | None
) -> GenerationCache | None:
    """Return the cache of generated answers; None if nothing is cached."""
    if settings.cache_bytes == 0:
        return None
    similar = None
    if embed is not None:
        # numpy is loaded only by those who ask for it
        from headroom_server.caching.semantic import (  # noqa: PLC0415
            SemanticAnswers,
            SemanticBounds,
        )

        bounds = SemanticBounds(
            settings.semantic_cache_threshold,
            settings.semantic_cache_entries,
            settings.cache_ttl_s,
            settings.cache_bytes,
        )
        similar = SemanticAnswers(bounds), embed
    options = LevelOptions(settings.cache_bytes, settings.cache_ttl_s, time.monotonic, second_level)
    return GenerationCache(options, similar)


def feature_cache_of(settings: Settings, second_level: GuardedStore | None) -> FeatureCache | None:
    """Return the cache of embeddings and tokens; None if it keeps nothing."""
    if settings.feature_cache_bytes == 0:
        return None
    return FeatureCache(_feature_levels(settings, second_level))


def _feature_levels(settings: Settings, second_level: GuardedStore | None) -> LevelOptions:
    max_bytes, ttl_s = settings.feature_cache_bytes, settings.feature_cache_ttl_s
    return LevelOptions(max_bytes, ttl_s, time.monotonic, second_level)


def embedding_identity(settings: Settings) -> str:
    """Identify the embedding model: its address, and its tokenizer's file."""
    status = (Path(settings.semantic_cache_tokenizer) / "tokenizer.json").stat()
    return repr((settings.semantic_cache_url, status.st_size, status.st_mtime_ns))


def generation_identity(settings: Settings, folder: Path | None) -> str:
    """Identify a generating model's weights, and the engine whose tokens are cached."""
    parts: list[object] = [
        settings.model_name,
        settings.engine,
        settings.vllm_args,
        settings.dtype,
        settings.int8_weights,
    ]
    if folder is not None:
        for path in sorted(folder.iterdir()):
            status = path.stat()
            parts.append((path.name, status.st_size, status.st_mtime_ns))
    return repr(parts)


def identity_of(settings: Settings, source: ModelSource) -> str:
    """Identify one version's weights for a store that outlives this process.

    The description contains the architecture and its parameters, and a digest if one is pinned.
    Otherwise the files next to it are identified by name, size and modification time: replicas that
    read the same volume or image agree on these. A class's code is not considered. Reads the
    folder, not the files.
    """
    description = source.description
    identity_parts: list[object] = [
        source.name,
        source.number,
        settings.engine,
        settings.model_class,
    ]
    identity_parts.append(description)
    pinned = description is not None and description.sha256 is not None
    if source.directory is not None and not pinned:
        for path in sorted(source.directory.iterdir()):
            status = path.stat()
            identity_parts.append((path.name, status.st_size, status.st_mtime_ns))
    return repr(identity_parts)
