"""Settings: caches of answers and of features. Pure."""

from __future__ import annotations

from pydantic import Field

from headroom_server.settings.fields import Group, Seconds


class CacheSettings(Group):
    """Response cache."""

    cache_bytes: int = Field(0, ge=0, le=1 << 40)
    """Bytes of cached answers per model, unless its description sets it; 0: no cache."""
    cache_ttl_s: Seconds = 60.0
    """Lifetime of a cached answer, in seconds."""
    cache_redis_url: str = Field("", max_length=4096, repr=False)
    """Redis as second level, shared by replicas: redis://, rediss:// or unix://."""
    cache_redis_key: str = Field("", max_length=4096, repr=False)
    """Secret of at least 32 characters, equal in all replicas, that seals what is in Redis."""
    cache_redis_trusted: bool = False
    """Use Redis without key and password: who can write there answers for every model."""
    semantic_cache_url: str = Field("", max_length=4096)
    """Embedding model that finds answers to similar questions, on a model server:
    http://HOST/v1/models/MODEL:predict. Empty: only equal requests are found."""
    semantic_cache_tokenizer: str = Field("", max_length=4096)
    """Folder with the embedding model's tokenizer.json."""
    semantic_cache_threshold: float = Field(0.95, ge=0.5, le=1.0, allow_inf_nan=False)
    """Least cosine of the embeddings of similar questions."""
    semantic_cache_entries: int = Field(10_000, ge=1, le=1_000_000)
    """Maximum answers that are found by similarity; at most HEADROOM_CACHE_BYTES of them, too."""
    feature_cache_bytes: int = Field(0, ge=0, le=1 << 40)
    """Bytes of cached features per model, also in Redis if it is set: of a model that generates
    text, embeddings of questions and tokens of prompts of 16 to 256 KiB; of a class, what its
    `featurize` computes from equal inputs. 0: no cache. Refused for others."""
    feature_cache_ttl_s: Seconds = 600.0
    """Lifetime of a cached feature, in seconds."""
