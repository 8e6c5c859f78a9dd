"""Gives big blocks back to the kernel as soon as they are free."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Of mallopt(3)."""
BIG_BYTES = 128 * 1024
"""As glibc has it at first. It raises it to the size of what is freed, up to 32 MB, and then keeps
among long-lived small blocks what a LIST or the 256 kB of a TLS connection were read into."""


def give_big_blocks_back() -> bool:
    """Fix the threshold; False where the C library is another, which has none to fix."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, BIG_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, BIG_BYTES))
