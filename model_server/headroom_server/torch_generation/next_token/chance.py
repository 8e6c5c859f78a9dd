"""The uniform number of a token: a hash of the request's seed and the token's position. Pure.

There is no state, so a result depends neither on the other members of a batch, nor on how often a
position was computed (preemption, rejected drafts), nor on the order of requests.
"""

from __future__ import annotations

_WORD = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


def _mixed(value: int) -> int:
    """Mix 64 bits (SplitMix64: Steele, Lea and Flood 2014)."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _WORD
    return value ^ value >> 31


def seed_of(process: int, key: int) -> int:
    """Return the seed of a request that has none, from the process's own."""
    return _mixed((process + (key + 1) * _STEP) & _WORD)


def uniform(seed: int, position: int) -> float:
    """Return the number in [0, 1) of the token at a position."""
    start = _mixed((seed + _STEP) & _WORD)
    return (_mixed((start + (position + 1) * _STEP) & _WORD) >> 11) * 2.0**-53
