"""Findings of the doctor, with their cause and remedy, as text or JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from textwrap import wrap

from headroom.api.reasons import StatusReason
from headroom.printable import printable

CLUSTER = "cluster"
LEAST_ROOM = 40
"""Columns that a cause gets on any terminal."""
_INDENT = 12 * " "


class Severity(StrEnum):
    """Severity of a finding."""

    PROBLEM = "problem"
    """The SLO is missed, or nothing works."""
    WARNING = "warning"
    """It works, but not as expected."""
    NOTE = "note"
    """Information; nothing has to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One finding about one subject."""

    finding: str
    """A StatusReason, or the reason of a condition of another version."""
    severity: Severity
    subject: str
    """`namespace/name` of a service, or of another object, or `cluster`."""
    why: str
    """The observation."""
    remedy: str
    """The next step."""


def problem(finding: StatusReason, subject: str, why: str, remedy: str) -> Diagnosis:
    """Return a finding that something does not work."""
    return Diagnosis(
        finding=finding, severity=Severity.PROBLEM, subject=subject, why=why, remedy=remedy
    )


def warning(finding: StatusReason, subject: str, why: str, remedy: str) -> Diagnosis:
    """Return a finding that something does not work as expected."""
    return Diagnosis(
        finding=finding, severity=Severity.WARNING, subject=subject, why=why, remedy=remedy
    )


def note(finding: StatusReason, subject: str, why: str, remedy: str) -> Diagnosis:
    """Return a finding for information."""
    return Diagnosis(
        finding=finding, severity=Severity.NOTE, subject=subject, why=why, remedy=remedy
    )


def is_well(found: Sequence[Diagnosis]) -> bool:
    """Return whether nothing has to be done."""
    return all(one.severity is Severity.NOTE for one in found)


_MARKS = {Severity.PROBLEM: "✕", Severity.WARNING: "!", Severity.NOTE: "·"}


def as_text(
    found: Sequence[Diagnosis], services: int, where: str, *, columns: int | None = None
) -> str:
    """Format each finding with its cause and remedy, then the counts.

    Causes are wrapped to `columns`; remedies are not, so that their commands can be copied.
    """
    counted = Counter(one.severity for one in found)
    looked = f"{services} {'service' if services == 1 else 'services'} examined in {where}"
    numbers = [
        f"{number} {kind}{'' if number == 1 else 's'}"
        for kind in Severity
        if (number := counted[kind])
    ]
    last = ", ".join([looked, *(numbers or ["nothing to do"])])
    blocks = [
        f"{_MARKS[one.severity]} {printable(one.finding)} {printable(one.subject)}\n"
        f"    why:    {_wrapped(printable(one.why), columns)}\n"
        f"    remedy: {printable(one.remedy)}"
        for one in found
    ]
    return "\n".join([*blocks, last])


def _wrapped(text: str, columns: int | None) -> str:
    """Return the text within the columns that the label leaves."""
    if columns is None:
        return text
    room = max(columns - len(_INDENT), LEAST_ROOM)
    lines = wrap(text, room, break_long_words=False, break_on_hyphens=False)
    return f"\n{_INDENT}".join(lines)


def as_json(found: Sequence[Diagnosis], services: int) -> str:
    """Format the findings for programs."""
    return json.dumps(
        {
            "well": is_well(found),
            "servicesExamined": services,
            "findings": [asdict(one) for one in found],
        },
        indent=2,
    )
