"""Random numbers for arrivals: one independent, reproducible stream per seed and name."""

from __future__ import annotations

import hashlib

import numpy as np

from headroom.simulator.validation import require

CHUNK = 100_000
"""Approximate arrivals per chunk: what a stream holds in memory at a time."""


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the generator of this seed and name, independent of all other streams.

    The name is hashed into the spawn key of a SeedSequence, so that two services of one scenario
    are independent, and adding one does not change the rest.

    Raises:
        ValueError: the seed is below 0.
    """
    require(seed >= 0, "seed must be an integer >= 0", seed)
    digest = hashlib.sha256(name.encode()).digest()[:16]
    key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
