"""The log's format: text of clients and models cannot begin a line or control a terminal.

A model's error may quote its input, such as a text with line feeds or escape sequences.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Any

_STEERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Control characters, line separators, and those that are invisible or change the order of what is
shown (https://www.unicode.org/reports/tr36/)."""


class _Formatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of the library
        record.message = _lines(record.message).lstrip()
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - of the library
        return _lines(super().formatException(ei))


def configure() -> None:
    """Log to standard error; the further lines of a message and a traceback begin with a space."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _lines(text: str) -> str:
    return "\n".join(f" {_STEERS.sub(_spelled, line)}" for line in text.splitlines())


def _spelled(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]
