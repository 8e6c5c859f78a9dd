"""The key-value cache of a transformer: bytes per token, and how many sequences fit.

Two tensors (keys and values) per layer, each as wide as the key-value heads together; grouped-query
attention (Ainslie 2023) has fewer of those than query heads.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.planner.errors import positive, require


def share_of_heads(heads: int, kv_heads: int) -> float:
    """Return key-value heads over query heads: each of the former serves as many of the latter.

    Raises ImpossiblePlan for heads that are not a multiple of the key-value heads.
    """
    shape = "Read both from the model's config.json"
    require(kv_heads >= 1, "key-value heads must be at least 1", kv_heads, shape)
    require(heads >= 1, "attention heads must be at least 1", heads, shape)
    require(
        heads % kv_heads == 0,
        f"attention heads must be a multiple of the key-value heads ({kv_heads})",
        heads,
        shape,
    )
    return kv_heads / heads


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """The properties of a model that determine the size of its cache."""

    layers: int
    width: int
    """Hidden size."""
    bytes_per_value: float = 2.0
    """2 for fp16 and bf16, 1 for fp8."""
    kv_share: float = 1.0
    """Key-value heads over query heads: 1 with plain multi-head attention, 0.25 for 8 of 32."""

    def __post_init__(self) -> None:
        """Raise ImpossiblePlan for an invalid model."""
        shape = "Read it from the model's config.json"
        require(self.layers >= 1, "the number of layers must be at least 1", self.layers, shape)
        require(self.width >= 1, "the hidden size must be at least 1", self.width, shape)
        positive("the size of a value in bytes", self.bytes_per_value, "2 is fp16")
        require(
            0 < self.kv_share <= 1,
            "key-value heads over query heads must be above 0 and at most 1",
            f"{self.kv_share:g}",
            shape,
        )

    @property
    def bytes_per_token(self) -> float:
        """Worked: 2 x 32 layers x 4096 x 2 bytes = 524 288, 0.5 MiB."""
        return 2.0 * self.layers * self.width * self.kv_share * self.bytes_per_value

    def cache_bytes(self, tokens: int) -> float:
        """Return the cache of one sequence of this length."""
        require(tokens >= 1, "a sequence must have at least 1 token", tokens, "Give its length")
        return tokens * self.bytes_per_token

    def tokens(self, memory_bytes: float, weights_bytes: float = 0.0) -> int:
        """Return how many tokens fit besides the weights.

        Raises ImpossiblePlan where the weights alone do not fit.
        """
        positive("the memory", memory_bytes, "Give the memory of the accelerator")
        require(
            0 <= weights_bytes < memory_bytes,
            f"the weights must be smaller than the memory of {memory_bytes / 2**30:.3g} GiB",
            f"{weights_bytes / 2**30:.3g} GiB",
            "Use a larger accelerator, several of them, or fewer bits per value",
        )
        return int((memory_bytes - weights_bytes) / self.bytes_per_token)

    def sequences(self, tokens: int, memory_bytes: float, weights_bytes: float = 0.0) -> int:
        """Return how many sequences of this length fit besides the weights: the slots of a replica.

        Raises ImpossiblePlan where not even one does.
        """
        require(tokens >= 1, "a sequence must have at least 1 token", tokens, "Give its length")
        fitting = self.tokens(memory_bytes, weights_bytes)
        require(
            fitting >= tokens,
            f"the memory must hold a sequence of {tokens} tokens besides the weights",
            f"room for {fitting} tokens",
            "Use more memory, fewer bits per value, or shorter sequences",
        )
        return fitting // tokens
