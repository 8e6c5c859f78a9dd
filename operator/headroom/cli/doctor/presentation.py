"""Findings → text for people, JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from headroom.cli.doctor.examination import is_well
from headroom.cli.doctor.findings import Diagnosis, Severity

_MARKS = {Severity.PROBLEM: "✕", Severity.WARNING: "!", Severity.NOTE: "·"}


def as_text(found: Sequence[Diagnosis], services: int) -> str:
    """Render each finding with its cause and its remedy, then how many there are."""
    counted = Counter(one.severity for one in found)
    looked = f"{services} {'service' if services == 1 else 'services'} examined"
    numbers = [
        f"{number} {kind}{'' if number == 1 else 's'}"
        for kind in Severity
        if (number := counted[kind])
    ]
    last = ", ".join([looked, *(numbers or ["nothing to do"])])
    blocks = [
        f"{_MARKS[one.severity]} {one.finding} {one.subject}\n"
        f"    why:    {one.why}\n"
        f"    remedy: {one.remedy}"
        for one in found
    ]
    return "\n".join([*blocks, last])


def as_json(found: Sequence[Diagnosis], services: int) -> str:
    """Render the findings for programs."""
    return json.dumps(
        {
            "well": is_well(list(found)),
            "servicesExamined": services,
            "findings": [asdict(one) for one in found],
        },
        indent=2,
    )
