"""Finds added tokens that mark turns of a chat but are not declared special. Pure.

DeepSeek R1 and V3 have `<|User|>` and `<|Assistant|>` of this kind (with wider bars): who writes
them in a message ends it, as with a special token. The chat template shows which they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headroom_server.errors import InvalidRequestError
from headroom_server.generation.text.chat import ChatFormat

_CONVERSATIONS = (
    ("system", "user", "assistant", "user"),
    ("user", "assistant", "user"),
    ("user",),
)
"""Roles in turn; a template refuses those that it does not know, or another order of them."""
_BRACKETED = re.compile(r"[<\[{].+[>\]}]")
"""Line ends and runs of spaces are added tokens, too; all texts have them."""
_TEXT = "."


def turn_marks(chat: ChatFormat, names: Iterable[str]) -> Sequence[str]:
    """Return those of the names of tokens that a template writes around plain messages.

    A name that it takes out of an answer is none, nor is what opens it: earlier answers are
    rendered without `<think>...</think>`.
    """
    plain = _rendered(chat, _TEXT)
    written = [name for name in names if _BRACKETED.fullmatch(name) and name in plain]
    taken = {name for name in written if f".{name}." not in _rendered(chat, f".{name}.")}
    return [name for name in written if not taken & {name, f"</{name[1:]}"}]


def _rendered(chat: ChatFormat, answer: str) -> str:
    """Return conversations with this answer, without the beginning of the next one."""
    texts = {"assistant": answer}
    return "\n".join(
        _prompt(chat, [{"role": role, "content": texts.get(role, _TEXT)} for role in roles])
        for roles in _CONVERSATIONS
    )


def _prompt(chat: ChatFormat, messages: Sequence[Mapping[str, Any]]) -> str:
    try:
        return chat.render(messages, add_generation_prompt=False)
    except InvalidRequestError:
        return ""
