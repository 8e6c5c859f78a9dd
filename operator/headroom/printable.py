"""Makes foreign text safe for a terminal, a page or a log: control characters are escaped. Pure.

A pod's last words, an owner's name and a status are what a tenant writes. Escape sequences in them
would rename the window, hide lines or make up others, such as a service that is healthy.
"""

from __future__ import annotations

import re
from typing import Any

_STEERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Control characters (C0, C1), line separators, and those that are invisible or change the order of
what is shown (https://www.unicode.org/reports/tr36/, bidirectional text spoofing)."""
_SPACE = "\t\n\r"


def printable(text: str) -> str:
    """Return the text on one line; control characters are spelled, as `\\x1b`."""
    if text.isprintable():  # as most are: a page of the console has thousands
        return text
    return _STEERS.sub(_spelled, text)


def printable_parts(value: Any) -> Any:
    """Return the same of every text in JSON."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_parts(key): printable_parts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [printable_parts(one) for one in value]
    return value


def _spelled(found: re.Match[str]) -> str:
    character = found[0]
    if character in _SPACE:
        return " "
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
