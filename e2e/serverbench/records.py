"""Finished measurements in a file, one JSON line each: an ended run goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

CHECKOUT = Path(__file__).parents[2]
FOLDER = CHECKOUT / ".bench"


class Case(StrEnum):
    """What is measured."""

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
    """What one measurement gave; `error` where it gave nothing."""

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
        """What it is of."""
        return Key(self.case, self.server, self.round)


def load(path: Path) -> dict[Key, Record]:
    """The last record of each measurement; a line that was torn by a kill is as good as none."""
    found: dict[Key, Record] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = Record.model_validate_json(line)
            except ValidationError:
                continue
            found[record.key] = record
    return found


def add(path: Path, record: Record) -> None:
    """Append one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + record.model_dump_json() + "\n")


def digest(paths: Iterable[Path], *said: object) -> str:
    """Of the files at and below these paths, and of what else was said."""
    found = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                found.update(str(file.relative_to(CHECKOUT)).encode() + file.read_bytes())
    found.update(repr(said).encode())
    return found.hexdigest()[:16]


def finite(values: Mapping[str, float]) -> dict[str, float | None]:
    """As a record holds them."""
    return {name: value if abs(value) < float("inf") else None for name, value in values.items()}
