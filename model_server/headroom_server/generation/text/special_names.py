"""Names of special tokens that clients write in messages are text, and no special tokens. Pure.

A tokenizer finds `<|im_end|>` anywhere in a prompt: an application that puts what its users write
into a message would let them end it, and go on as the system. So such a name is cut between its
characters wherever a message has it, and each piece of the rendered prompt is tokenized alone.
The chat template's own names stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

CUT = "\ufdd0"
"""No character (Unicode 15.0, section 23.7): texts do not have it."""
_END = ""
Spans = Callable[[str], Sequence[tuple[int, int]]]
"""Returns the characters of a text, from and to, that a tokenizer takes for a name."""


class SpecialNames:
    """The names that a tokenizer finds in text."""

    def __init__(self, names: Iterable[str], spans: Spans | None = None) -> None:
        """`spans`: of names that a tokenizer finds although they are written in another way."""
        self._spans = spans
        known = [one for one in names if len(one) > 1]
        self._pattern = re.compile(_expression(known)) if known else None

    def as_text(self, value: Any) -> Any:
        """Return messages, or any part of them, with each name cut."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            text = self._cut(self._pattern, value)
            return text if self._spans is None else _cut_spans(text, self._spans)
        if isinstance(value, Mapping):
            return {self.as_text(key): self.as_text(one) for key, one in value.items()}
        return [self.as_text(one) for one in value] if isinstance(value, Sequence) else value

    @staticmethod
    def _cut(pattern: re.Pattern[str], text: str) -> str:
        while (further := pattern.sub(lambda found: CUT.join(found[0]), text)) != text:
            text = further
        return text


def _cut_spans(text: str, spans: Spans) -> str:
    """Cut each piece where a name is found, until none is; a single character is taken out."""
    done, rest = list[str](), text.split(CUT)[::-1]
    while rest:
        piece = rest.pop()
        found = spans(piece)
        if not found:
            done.append(piece)
            continue
        parts, end = list[str](), 0
        for begin, until in found:
            name = piece[begin:until]
            parts += [piece[end:begin], *(name if len(name) > 1 else "")]
            end = until
        rest += [one for one in (*parts, piece[end:]) if one][::-1]
    return CUT.join(done)


def pieces(prompt: str) -> Sequence[str]:
    """Return the pieces of a rendered prompt that are tokenized alone."""
    return [one for one in prompt.split(CUT) if one] or [""]


def _expression(names: Sequence[str]) -> str:
    """Return an expression of any of the names, which looks at each character of a text once.

    Models have hundreds that begin alike: tried one by one, 16 KiB of `<|` would take 40 ms.
    """
    following: dict[str, list[str]] = {}
    for name in names:
        following.setdefault(name[:1], []).append(name[1:])
    ends = following.pop(_END, None) is not None
    branches = [
        re.escape(first) + (_expression(rest) if rest != [_END] else "")
        for first, rest in following.items()
    ]
    found = branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
    return f"(?:{found})?" if ends else found
