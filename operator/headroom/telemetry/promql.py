"""PromQL selectors built from typed matchers, so that no value can become syntax. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_MOST_SECONDS = 86_400


class Operator(StrEnum):
    """Comparison operators of label matchers."""

    EQUALS = "="
    MATCHES = "=~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """One condition on a label. Made by `equals` and `one_of`."""

    label: str
    operator: Operator
    value: str

    def __post_init__(self) -> None:
        """Raise ValueError if it cannot be written as PromQL."""
        if _LABEL.fullmatch(self.label) is None:
            raise ValueError(f"a label must be letters, digits and _; got {self.label!r:.80}")
        try:
            self.value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"a label's value must be text; got {self.value!r:.80}") from error

    def text(self) -> str:
        """Return it as PromQL."""
        return f"{self.label}{self.operator}{_quoted(self.value)}"


def equals(label: str, value: str) -> Matcher:
    """Match this value of the label."""
    return Matcher(label=label, operator=Operator.EQUALS, value=value)


def one_of(label: str, values: Iterable[str]) -> Matcher:
    """Match any of these values of the label; all characters are literal."""
    alternatives = "|".join(re.escape(value) for value in sorted(set(values)))
    return Matcher(label=label, operator=Operator.MATCHES, value=alternatives)


def recent(matchers: Iterable[Matcher], window_s: float) -> str:
    """Return a selector of all samples of the last `window_s` seconds, with their own times.

    Raises ValueError without matchers, or for a window not above zero or longer than a day.
    """
    written = ",".join(one.text() for one in matchers)
    if not written:
        raise ValueError("a selector must have a matcher; got none")
    milliseconds = round(window_s * 1000)
    if not 0 < milliseconds <= _MOST_SECONDS * 1000:
        raise ValueError(f"window must be above 0 s and at most a day; got {window_s:g} s")
    return f"{{{written}}}[{milliseconds}ms]"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'
