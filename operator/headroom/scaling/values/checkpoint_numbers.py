"""Reads and writes the numbers of a checkpoint, which other writers of status may have changed."""

from __future__ import annotations

from collections.abc import Mapping

Checkpoint = Mapping[str, object]
LARGEST_NUMBER = 1e24
"""Counts and their squared sizes stay far below, its fourth power is finite."""
MOST_COUNTED, MOST_BATCH, MOST_SECONDS = 2.0**53, 2.0**20, 86_400.0
"""Bounds as for the numbers of a page (`telemetry/bounds/physical_bounds.py`): who may write
status may write anything into a checkpoint."""


def short(value: float, digits: int = 9) -> float:
    """Return the number with this many significant digits."""
    return float(f"{value:.{digits}g}")


def numbers_of(checkpoint: Checkpoint, key: str) -> list[float]:
    """Return a list of finite numbers >= 0; raise ValueError for anything else."""
    values = checkpoint.get(key)
    if not isinstance(values, list):
        raise ValueError(f"checkpoint {key} must be a list of numbers; got {values!r}")
    numbers = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"checkpoint {key} must hold numbers; got {value!r}")
        if not 0 <= value <= LARGEST_NUMBER:
            rule = f"numbers from 0 to {LARGEST_NUMBER:g}"
            raise ValueError(f"checkpoint {key} must hold {rule}; got {value!r:.40}")
        numbers.append(float(value))
    return numbers


def groups_of(checkpoint: Checkpoint, key: str, size: int, most: int) -> list[tuple[float, ...]]:
    """Return at most this many groups of `size` numbers; none if the key is missing.

    Raise ValueError for anything else.
    """
    if key not in checkpoint:
        return []
    numbers = numbers_of(checkpoint, key)
    if len(numbers) % size or len(numbers) > most * size:
        rule = f"at most {most} times {size} numbers"
        raise ValueError(f"checkpoint {key} must hold {rule}; got {len(numbers)}")
    return [tuple(numbers[at : at + size]) for at in range(0, len(numbers), size)]
