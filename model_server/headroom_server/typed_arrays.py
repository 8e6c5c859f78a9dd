"""Numbers in typed arrays; FP16 and BF16, for which `array` has no type, as 16 bits. Pure."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

Numbers: TypeAlias = "array[int] | array[float]"

FP16_HIGHEST = 65504.0
BF16_HIGHEST = 3.3895313892515355e38
"""2**127 * (2 - 2**-7)."""


def finite(numbers: Iterable[float]) -> bool:
    """Return whether no number is NaN or infinite. The sum decides unless it overflows."""
    return math.isfinite(sum(numbers)) or all(map(math.isfinite, numbers))


def _within(numbers: Sequence[float], highest: float) -> None:
    # comparisons with NaN are false: the sum detects it
    if not finite(numbers) or (numbers and max(map(abs, numbers)) > highest):
        raise OverflowError


def fp16_packed(numbers: Sequence[float]) -> Numbers:
    """Round to nearest, ties to even; raise OverflowError for one that is out of range."""
    _within(numbers, FP16_HIGHEST)
    return array("H", struct.pack(f"={len(numbers)}e", *numbers))


def fp16_values(numbers: Numbers) -> list[Any]:
    """Return the numbers; the inverse of `fp16_packed`."""
    return [*struct.unpack(f"={len(numbers)}e", numbers.tobytes())]


def bf16_packed(numbers: Sequence[float]) -> Numbers:
    """Round to FP32 and then to BF16, each to nearest, ties to even, as torch does.

    Raises:
        OverflowError: a number is out of range.
    """
    _within(numbers, BF16_HIGHEST)
    bits = array("I", array("f", numbers).tobytes())
    return array("H", [(one + 0x7FFF + (one >> 16 & 1)) >> 16 for one in bits])


def bf16_values(numbers: Numbers) -> list[Any]:
    """Return the numbers; the inverse of `bf16_packed`."""
    return array("f", array("I", [int(one) << 16 for one in numbers]).tobytes()).tolist()


def exponents_below(mask: int) -> Callable[[Numbers], bool]:
    """Return a test for NaN and infinity, which have all exponent bits (`mask`) set."""
    return lambda numbers: all(int(one) & mask != mask for one in numbers)
