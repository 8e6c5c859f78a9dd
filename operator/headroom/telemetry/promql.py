"""PromQL selectors, put together from typed matchers: no value can become syntax. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_MOST_SECONDS = 86_400


class Operator(StrEnum):
    """How a label is compared."""

    EQUALS = "="
    MATCHES = "=~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """One condition on a label. Made by `equals` and `one_of`."""

    label: str
    operator: Operator
    value: str

    def __post_init__(self) -> None:
        """Raise ValueError where it cannot be written."""
        if _LABEL.fullmatch(self.label) is None:
            raise ValueError(f"a label is letters, digits and _, received {self.label!r:.80}")
        try:
            self.value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"a label's value is text, received {self.value!r:.80}") from error

    def text(self) -> str:
        """Write it as PromQL."""
        return f"{self.label}{self.operator}{_quoted(self.value)}"


def equals(label: str, value: str) -> Matcher:
    """The label has this value."""
    return Matcher(label=label, operator=Operator.EQUALS, value=value)


def one_of(label: str, values: Iterable[str]) -> Matcher:
    """The label has one of these values, whatever characters they are made of."""
    alternatives = "|".join(re.escape(value) for value in sorted(set(values)))
    return Matcher(label=label, operator=Operator.MATCHES, value=alternatives)


def recent(matchers: Iterable[Matcher], window_s: float) -> str:
    """Select all samples of the last `window_s` seconds, each with its own time.

    Raises ValueError for a window that is not above zero and at most a day, and without matchers.
    """
    written = ",".join(one.text() for one in matchers)
    if not written:
        raise ValueError("a selector needs a matcher, received none")
    milliseconds = round(window_s * 1000)
    if not 0 < milliseconds <= _MOST_SECONDS * 1000:
        raise ValueError(f"a window is above 0 s and at most a day, received {window_s:g} s")
    return f"{{{written}}}[{milliseconds}ms]"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'
