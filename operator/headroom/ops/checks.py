"""Named checks, shown as JSON or line by line as by Kubernetes components. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """One check of an endpoint."""

    name: str
    complaint: str = ""
    """The problem and its remedy; empty if the check passes."""

    @property
    def passed(self) -> bool:
        """Return whether the check passes."""
        return not self.complaint


def passed(checks: Iterable[Check]) -> bool:
    """Return whether all checks pass."""
    return all(check.passed for check in checks)


def as_json(checks: Iterable[Check], about: Mapping[str, Any]) -> dict[str, Any]:
    """Format for programs; `about` adds information."""
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
    """Format as text, as `kubectl get --raw '/readyz?verbose'` does."""
    listed = tuple(checks)
    lines = [
        f"[+]{one.name} ok" if one.passed else f"[-]{one.name} failed: {one.complaint}"
        for one in listed
    ]
    return "\n".join([*lines, f"{endpoint} check {'passed' if passed(listed) else 'failed'}", ""])


def _word(good: bool) -> str:
    return "ok" if good else "failed"
