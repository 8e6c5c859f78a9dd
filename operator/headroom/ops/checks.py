"""Named checks, and how they are shown: as JSON, or line by line as kube components do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that has to be so."""

    name: str
    complaint: str = ""
    """What is wrong and what to do; empty: nothing."""

    @property
    def passed(self) -> bool:
        """Whether it is so."""
        return not self.complaint


def passed(checks: Iterable[Check]) -> bool:
    """Whether all are so."""
    return all(check.passed for check in checks)


def as_json(checks: Iterable[Check], about: Mapping[str, Any]) -> dict[str, Any]:
    """Render for programs; `about` says what is neither good nor bad."""
    listed = tuple(checks)
    return {
        "status": _word(passed(listed)),
        "checks": [
            {"name": one.name, "status": _word(one.passed)}
            | ({"message": one.complaint} if one.complaint else {})
            for one in listed
        ],
        **about,
    }


def as_lines(endpoint: str, checks: Iterable[Check]) -> str:
    """Render for people, as `kubectl get --raw '/readyz?verbose'` does."""
    listed = tuple(checks)
    lines = [
        f"[+]{one.name} ok" if one.passed else f"[-]{one.name} failed: {one.complaint}"
        for one in listed
    ]
    return "\n".join([*lines, f"{endpoint} check {'passed' if passed(listed) else 'failed'}", ""])


def _word(good: bool) -> str:
    return "ok" if good else "failed"
