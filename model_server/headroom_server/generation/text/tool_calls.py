"""Tool calls in an answer's text, in the styles that models are trained on. Pure.

| style | text | models |
|---|---|---|
| `tagged` | `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, any number | Hermes, Qwen |
| `json` | the whole answer is `{"name": ..., "parameters": {...}}`, or a list of them | Llama 3 |

Text that is not a call is content. A call is reported when it is complete. A piece of text costs
the same however much was said before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from io import StringIO
from typing import NamedTuple

import orjson

MOST_SPACE = 256
"""Characters of space that wait for a call behind them; more are content."""
OPEN, CLOSE = "<tool_call>", "</tool_call>"


class ToolStyle(StrEnum):
    """Style in which a model writes calls."""

    TAGGED = "tagged"
    JSON = "json"


class Call(NamedTuple):
    """A call of a function."""

    name: str
    arguments: str
    """A JSON object."""


class Parsed(NamedTuple):
    """Content that may be sent, and complete calls."""

    text: str
    calls: tuple[Call, ...] = ()


NOTHING = Parsed("")


def style_of(template: str) -> ToolStyle:
    """Return the style that a chat template describes to its model."""
    return ToolStyle.TAGGED if OPEN in template else ToolStyle.JSON


class TaggedCalls:
    """Finds tagged calls; the text outside of them is passed on as soon as it cannot be a tag."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._call_text = StringIO()
        """Text of a call, before what is held."""

    @property
    def held(self) -> int:
        """Characters that wait."""
        return len(self._held) + self._call_text.tell()

    def push(self, text: str) -> Parsed:
        """Return the parts that this text completes."""
        self._held += text
        content: list[str] = []
        calls: list[Call] = []
        while True:
            before, tag, after = self._held.partition(CLOSE if self._inside else OPEN)
            if not tag:
                break
            if self._inside:
                before = self._taken(before)
                call = call_of(before)
                if call is None:
                    content.append(f"{OPEN}{before}{CLOSE}")
                else:
                    calls.append(call)
            elif before.strip():
                content.append(before)
            self._held, self._inside = after, not self._inside
        if self._inside:
            certain = len(self._held) - _begun(self._held, CLOSE)
            self._call_text.write(self._held[:certain])
            self._held = self._held[certain:]
        else:
            content.append(self._released())
        return Parsed("".join(content), tuple(calls))

    def flush(self) -> Parsed:
        """Return the rest: a call without its closing tag, or text."""
        held, self._held = self._held, ""
        if not self._inside:
            return Parsed(held)
        self._inside = False
        held = self._taken(held)
        call = call_of(held)
        return Parsed(OPEN + held) if call is None else Parsed("", (call,))

    def _taken(self, end: str) -> str:
        """Take the text of a call, whose end this is."""
        text, self._call_text = self._call_text.getvalue() + end, StringIO()
        return text

    def _released(self) -> str:
        """Take the text that cannot be the beginning of a tag, or of the space before one."""
        text = self._held
        before = len(text) - _begun(text, OPEN)
        certain = max(len(text[:before].rstrip()), before - MOST_SPACE)
        self._held = text[certain:]
        return text[:certain]


def _begun(text: str, tag: str) -> int:
    """Return how many characters at the end of a text may be the beginning of a tag."""
    return next((size for size in range(len(tag) - 1, 0, -1) if text.endswith(tag[:size])), 0)


class JsonCalls:
    """Takes an answer that begins like JSON as calls, if it turns out to be some."""

    def __init__(self) -> None:
        self._held = StringIO()
        self._begun = self._content = False

    @property
    def held(self) -> int:
        """Characters that wait."""
        return self._held.tell()

    def push(self, text: str) -> Parsed:
        """Return the text unless it may be a call."""
        if self._content:
            return Parsed(text)
        self._held.write(text)
        if self._begun:
            return NOTHING
        held = self._held.getvalue()
        begun = held.lstrip()
        self._begun = begun[:1] in ("{", "[")
        if self._begun or (not begun and len(held) <= MOST_SPACE):
            return NOTHING
        self._content = True
        return self._text()

    def _text(self) -> Parsed:
        held, self._held = self._held.getvalue(), StringIO()
        return Parsed(held)

    def flush(self) -> Parsed:
        """Return the calls, or the text if it has none."""
        held = self._text().text
        calls = calls_of(held) if held else None
        return Parsed(held) if calls is None else Parsed("", tuple(calls))


ToolCalls = TaggedCalls | JsonCalls


def parser_of(style: ToolStyle) -> ToolCalls:
    """Return a new parser."""
    return TaggedCalls() if style is ToolStyle.TAGGED else JsonCalls()


def call_of(text: str) -> Call | None:
    """Return the call in a JSON text; None if it has none."""
    calls = calls_of(text)
    return calls[0] if calls is not None and len(calls) == 1 else None


def calls_of(text: str) -> Sequence[Call] | None:
    """Return the calls in a JSON text, an object or a list of objects; None if it has none."""
    try:
        found = orjson.loads(text.strip())
    except orjson.JSONDecodeError:
        return None
    calls = [_call(one) for one in (found if isinstance(found, list) else [found])]
    valid = [one for one in calls if one is not None]
    return valid if valid and len(valid) == len(calls) else None


def _call(found: object) -> Call | None:
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    arguments = found.get("arguments", found.get("parameters", {}))
    if isinstance(arguments, str):
        return Call(found["name"], arguments)
    if not isinstance(arguments, dict):
        return None
    try:
        return Call(found["name"], orjson.dumps(arguments).decode())
    except orjson.JSONEncodeError:  # it reads deeper objects than it writes
        return None
