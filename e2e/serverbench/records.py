"""Result of one measurement of one server, and the file of all results."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

import results


class Case(StrEnum):
    """A measurement."""

    IDLE = "idle"
    LIGHT = "20rps"
    STEADY = "300rps"
    CPU = "cpu"
    KNEE = "knee"
    OVERLOAD = "overload"
    SLOW = "slow"
    DISCONNECT = "disconnect"
    SIGTERM = "sigterm"
    LENGTHS = "lengths"
    SOAK = "soak"


class Key(NamedTuple):
    """One measurement of one server."""

    case: Case
    server: str
    round: int


class Record(BaseModel):
    """The result of one measurement; `error` if it failed."""

    model_config = ConfigDict(frozen=True)

    case: Case
    server: str
    round: int
    fingerprint: str
    values: dict[str, float | None]
    """None: not a number, or infinite."""
    error: str = ""

    @property
    def key(self) -> Key:
        """Return the key of the measurement."""
        return Key(self.case, self.server, self.round)


def load(path: Path) -> dict[Key, Record]:
    """Return the last record of each measurement; lines of another form are skipped."""
    found: dict[Key, Record] = {}
    for row in results.load(path):
        try:
            record = Record.model_validate(row)
        except ValidationError:
            continue
        found[record.key] = record
    return found


def add(path: Path, record: Record) -> None:
    """Append one record."""
    results.append(path, record.model_dump(mode="json"))


def finite(values: Mapping[str, float]) -> dict[str, float | None]:
    """Return the values as a record holds them."""
    return {name: value if abs(value) < float("inf") else None for name, value in values.items()}
