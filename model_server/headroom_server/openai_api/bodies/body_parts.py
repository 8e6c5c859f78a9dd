"""Bounds on the values in a body, and in the arguments of its tool calls. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headroom_server.errors import TooLargeError
from headroom_server.openai_api.bodies.chat_schemas import Message
from headroom_server.protocols.body_bounds import without_strings

UNCHECKED_BYTES = 64 * 1024
"""Smaller bodies are parsed as they are: they cost at most 8 MiB."""
OTHER_COMMAS = 64 * 1024
"""Commas of everything that is not a prompt of token numbers."""
MAX_PARTS = 64 * 1024
"""Lists, objects and fields: 100 ms and 64 MiB if none of them is a known one."""
MAX_STRINGS = 64 * 1024


def check_parts(body: bytes, context_tokens: int) -> None:
    """Check that a body has no more values than a request needs, before it is parsed.

    `[]` has 2 bytes in a body and takes 64 in memory.

    Raises:
        TooLargeError: it has.
    """
    if len(body) <= UNCHECKED_BYTES:
        return
    most = OTHER_COMMAS + 2 * context_tokens
    if not _fits(body, most) and not _fits(without_strings(body, MAX_STRINGS), most):
        raise TooLargeError(
            f"the body must have at most {most} values and {MAX_PARTS} lists, objects and fields; "
            "got more"
        )


def _fits(body: bytes, commas: int) -> bool:
    parts = sum(body.count(mark) for mark in (b"[", b"{", b":"))
    return parts <= MAX_PARTS and body.count(b",") <= commas


def check_arguments(messages: Sequence[Message]) -> None:
    """Check the values in the arguments of all earlier calls: `check_parts` sees them as strings.

    Raises:
        TooLargeError: they are too many.
    """
    texts = [call.function.arguments.encode() for one in messages for call in one.tool_calls or ()]
    if _marks(texts) <= MAX_PARTS:
        return
    if _marks([without_strings(one, MAX_STRINGS) for one in texts]) > MAX_PARTS:
        raise TooLargeError(
            f"arguments of tool calls must have at most {MAX_PARTS} values and fields together; "
            "got more"
        )


def _marks(texts: Sequence[bytes]) -> int:
    return sum(text.count(mark) for text in texts for mark in (b"[", b"{", b":", b","))
