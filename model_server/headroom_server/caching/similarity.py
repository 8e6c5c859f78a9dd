"""The most similar of many unit vectors, by cosine. Pure.

Each vector has a code of `BITS` bits: on which side of as many random planes it lies. Two vectors
at angle a differ in BITS * a / pi bits on average, with the variance of as many coin throws
(Charikar 2002). Vectors whose codes differ by `DEVIATIONS` more than that are not compared. At
100 000 vectors of 384 numbers the codes are 3 MB, which are read in less than a millisecond; the
vectors would be 150 MB.

What is returned is exact; what is just similar enough may be missed, one time in 30 000. At cosine
0.95 (18 degrees) codes differ in 26 +- 5 of 256 bits, and those of unrelated vectors (60 degrees or
more) in at least 85 +- 8.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

BITS = 256
WORDS = 4
DEVIATIONS = 4.0
CANDIDATES = 64
"""Most vectors that are compared."""
SHRINKS_BELOW = 4
"""Half of the room is given back when less than one part in this many is in use."""

Vector = np.ndarray[Any, np.dtype[np.float32]]


class Nearest(NamedTuple):
    """A row and its cosine with the vector that was asked for."""

    row: int
    similarity: float


def unit(numbers: Any) -> Vector | None:
    """Return numbers as a vector of length 1; None if that is impossible."""
    vector = np.asarray(numbers, dtype=np.float32)
    if vector.ndim != 1 or not vector.size:
        return None
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length < 1e-12:
        return None
    return vector / np.float32(length)


@lru_cache(maxsize=4)
def _planes(dimension: int) -> Any:
    """Return the planes of all sets of vectors: 0.4 MB of 384 dimensions, and 2 ms to draw."""
    planes = np.random.default_rng(0).standard_normal((BITS, dimension))
    return planes.astype(np.float32)


class SimilarVectors:
    """Unit vectors in rows 0 to len - 1; the last row fills the place of a removed one."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._codes = np.zeros((WORDS, 1), np.uint64)
        self._vectors = np.zeros((1, dimension), np.float16)
        self._count = 0

    def __len__(self) -> int:
        """Return the number of vectors."""
        return self._count

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self._codes.nbytes + self._vectors.nbytes

    def add(self, vector: Vector) -> int:
        """Add a vector and return its row."""
        row = self._count
        if row == len(self._vectors):
            self._codes = np.concatenate((self._codes, np.zeros_like(self._codes)), axis=1)
            self._vectors = np.concatenate((self._vectors, np.zeros_like(self._vectors)))
        self._codes[:, row] = self._code(vector)
        self._vectors[row] = vector
        self._count = row + 1
        return row

    def remove(self, row: int) -> int:
        """Remove a row; return the row that moved into its place, itself if none did."""
        last = self._count - 1
        self._codes[:, row] = self._codes[:, last]
        self._vectors[row] = self._vectors[last]
        self._count = last
        if SHRINKS_BELOW * last < len(self._vectors) > 1:
            room = len(self._vectors) // 2
            self._codes, self._vectors = self._codes[:, :room].copy(), self._vectors[:room].copy()
        return last

    def nearest(self, vector: Vector, least: float) -> Nearest | None:
        """Return the most similar vector whose cosine is at least `least`."""
        rows = self._candidates(self._code(vector), least)
        if not rows.size:
            return None
        cosines = self._vectors[rows].astype(np.float32) @ vector
        best = int(cosines.argmax())
        similarity = float(cosines[best])
        return Nearest(int(rows[best]), similarity) if similarity >= least else None

    def _candidates(self, code: Any, least: float) -> Any:
        different = np.zeros(self._count, np.uint8)
        for word, own in zip(self._codes, code, strict=True):
            # an opposite vector differs in 256 bits, which is 0 here: it is compared in vain
            different += np.bitwise_count(word[: self._count] ^ own)
        share = math.acos(min(1.0, max(-1.0, least))) / math.pi
        most = BITS * share + DEVIATIONS * math.sqrt(BITS * share * (1.0 - share))
        rows = np.flatnonzero(different <= min(most, 255.0))
        if rows.size > CANDIDATES:
            rows = rows[np.argpartition(different[rows], CANDIDATES)[:CANDIDATES]]
        return rows

    def _code(self, vector: Vector) -> Any:
        return np.packbits(_planes(self.dimension) @ vector > 0).view(np.uint64)
