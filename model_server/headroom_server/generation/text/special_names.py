"""Names of special tokens that clients write in messages are text, and no special tokens. Pure.

A tokenizer finds `<|im_end|>` anywhere in a prompt: an application that puts what its users write
into a message would let them end it, and go on as the system. So such a name is cut between its
characters wherever a message has it, and each piece of the rendered prompt is tokenized alone.
The chat template's own names stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

CUT = "\ufdd0"
"""No character (Unicode 15.0, section 23.7): texts do not have it."""
_END = ""


class SpecialNames:
    """The names that a tokenizer finds in text."""

    def __init__(self, names: Iterable[str]) -> None:
        known = [one for one in names if len(one) > 1]
        self._pattern = re.compile(_expression(known)) if known else None

    def as_text(self, value: Any) -> Any:
        """Return messages, or any part of them, with each name cut."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self._cut(self._pattern, value)
        if isinstance(value, Mapping):
            return {self.as_text(key): self.as_text(one) for key, one in value.items()}
        return [self.as_text(one) for one in value] if isinstance(value, Sequence) else value

    @staticmethod
    def _cut(pattern: re.Pattern[str], text: str) -> str:
        while (further := pattern.sub(lambda found: CUT.join(found[0]), text)) != text:
            text = further
        return text


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
