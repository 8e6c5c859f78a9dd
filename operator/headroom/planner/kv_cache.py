"""The key-value cache of a transformer: bytes per token, and how many sequences fit.

Two tensors (keys and values) per layer, each as wide as the key-value heads together; grouped-query
attention (Ainslie 2023) has fewer of those than query heads.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.planner.errors import positive, require


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """What of a model's shape decides its cache."""

    layers: int
    width: int
    """Hidden size."""
    bytes_per_value: float = 2.0
    """2 for fp16 and bf16, 1 for fp8."""
    kv_share: float = 1.0
    """Key-value heads over query heads: 1 with plain multi-head attention, 0.25 for 8 of 32."""

    def __post_init__(self) -> None:
        """Raise ImpossiblePlan for a model that cannot be."""
        shape = "read it from the model's config.json"
        require(self.layers >= 1, "a model has at least 1 layer", self.layers, shape)
        require(self.width >= 1, "the hidden size is at least 1", self.width, shape)
        positive("the size of a value in bytes", self.bytes_per_value, "2 for fp16")
        require(
            0 < self.kv_share <= 1,
            "key-value heads are at most as many as query heads",
            f"{self.kv_share:g}",
            shape,
        )

    @property
    def bytes_per_token(self) -> float:
        """Worked: 2 x 32 layers x 4096 x 2 bytes = 524 288, 0.5 MiB."""
        return 2.0 * self.layers * self.width * self.kv_share * self.bytes_per_value

    def cache_bytes(self, tokens: int) -> float:
        """Cache of one sequence of this length."""
        require(tokens >= 1, "a sequence has at least 1 token", tokens, "give its length")
        return tokens * self.bytes_per_token

    def sequences(self, tokens: int, memory_bytes: float, weights_bytes: float = 0.0) -> int:
        """Sequences of this length that fit beside the weights: the slots of a replica.

        Raises ImpossiblePlan where the weights alone do not fit.
        """
        positive("the memory", memory_bytes, "give the accelerator's bytes")
        require(
            0 <= weights_bytes < memory_bytes,
            f"the weights fit into {memory_bytes / 2**30:.3g} GiB",
            f"{weights_bytes / 2**30:.3g} GiB",
            "take a larger accelerator, several, or fewer bits per value",
        )
        return int((memory_bytes - weights_bytes) / self.cache_bytes(tokens))
