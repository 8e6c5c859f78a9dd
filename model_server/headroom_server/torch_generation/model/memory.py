"""Measures the memory, and counts the blocks of keys and values that fit into it."""

from __future__ import annotations

from pathlib import Path

import torch

from headroom_server.engine import LoadError
from headroom_server.torch_generation.model.model_shape import ModelShape

GROUPS = Path("/sys/fs/cgroup")
KV_SHARE = 0.8
"""Share of the memory that is left after the weights; the rest is for intermediate results."""


def usual_block_tokens(device_type: str) -> int:
    """Return the tokens of a block of keys and values.

    A recorded decode reads a block at a time: with 64 instead of 16 tokens, 32 contexts of 8000
    take 23 ms instead of 43 (8 billion weights, H200).
    """
    return 64 if device_type == "cuda" else 16


def available_bytes(device: torch.device, group: Path = GROUPS) -> int:
    """Return the bytes that can still be allocated: the container's or the machine's, the lower."""
    if device.type == "cuda":
        free: int = torch.cuda.mem_get_info(device)[0]
        return free
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    free = int(fields["MemAvailable"].split()[0]) * 1024
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        used = int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return free
    return free if limit == "max" else max(0, min(free, int(limit) - used))


def check_weights(
    shape: ModelShape, bytes_per_weight: int, available: int, copied: int = 0
) -> None:
    """Check that the weights fit, before they are read; `copied` of them are kept twice.

    Raises:
        LoadError: they do not.
    """
    needed = (shape.parameters + copied) * bytes_per_weight
    if needed > available:
        raise LoadError(
            f"the memory must hold the weights, {needed / 2**20:.0f} MiB; got "
            f"{available / 2**20:.0f} MiB: use a smaller number format, a smaller model or more "
            "memory"
        )


def count_blocks(
    shape: ModelShape,
    *,
    block_tokens: int,
    bytes_per_number: int,
    kv_bytes: int | None,
    available: int,
    context_tokens: int,
) -> int:
    """Return how many blocks to reserve: `kv_bytes`, or a share of what is available.

    Raises:
        LoadError: not even one sequence of the longest context fits.
    """
    block_bytes = shape.kv_numbers * block_tokens * bytes_per_number
    room = int(available * KV_SHARE) if kv_bytes is None else kv_bytes
    if kv_bytes is not None and kv_bytes > available:
        raise LoadError(
            f"the memory of keys and values must be at most {available} bytes, which are "
            f"available; got {kv_bytes}"
        )
    blocks = room // block_bytes
    least = -(-context_tokens // block_tokens)
    if blocks < least:
        raise LoadError(
            f"the memory of keys and values must hold one context of {context_tokens} tokens, "
            f"{least * block_bytes} bytes; got {room}: reduce the context or add memory"
        )
    return blocks
