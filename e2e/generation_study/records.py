"""The finished runs of a study, one JSON line each, so that a study continues where it stopped."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import results
from generation_study.cells import Cell
from generation_study.settings import HEADROOM, Setting
from headroom.simulator.generation.outcome import TokenScore


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run."""

    cell: Cell
    setting: Setting
    score: TokenScore


@cache
def digest(kind: str) -> str:
    """Return the digest of the sources that a run depends on: others are not current.

    Bounds and peers do not call the decision, so their runs outlive a change of it.
    """
    root = Path(__file__).parents[2] / "operator" / "headroom"
    scaling = root / "scaling"
    values = sorted((scaling / "values").glob("*.py"))
    files = [
        *sorted((root / "simulator" / "generation").rglob("*.py")),
        *(sorted(scaling.rglob("*.py")) if kind == HEADROOM.kind else values),
        Path(__file__).parent / "cells.py",
    ]
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def append(path: Path, record: Record) -> None:
    """Add a run to the file."""
    row = {
        "version": digest(record.setting.kind),
        "cell": asdict(record.cell),
        "setting": {"kind": record.setting.kind, "knobs": record.setting.knobs},
        "score": asdict(record.score),
    }
    results.append(path, row)


def load(path: Path) -> dict[tuple[Cell, Setting], Record]:
    """Return the current runs of the file."""
    found: dict[tuple[Cell, Setting], Record] = {}
    for each in results.load(path):
        if each["version"] != digest(each["setting"]["kind"]):
            continue
        knobs = tuple((knob, value) for knob, value in each["setting"]["knobs"])
        setting = Setting(kind=each["setting"]["kind"], knobs=knobs)
        score: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in each["score"].items()
        }
        record = Record(
            cell=Cell(**each["cell"]),
            setting=setting,
            score=TokenScore(**score),
        )
        found[record.cell, record.setting] = record
    return found
