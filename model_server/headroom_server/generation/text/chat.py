"""The port of chat templates, which make prompts of messages, and one for models without any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class ChatFormat(Protocol):
    """Renders messages as the text that a model was trained on."""

    takes_tools: bool
    """Whether it can describe tools to the model."""

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the prompt.

        Raises:
            InvalidRequestError: it does not accept these messages.
        """


class PlainChat:
    """`role: content` on a line per message, for emulated models."""

    takes_tools = False

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the prompt."""
        lines = [f"{one['role']}: {one.get('content') or ''}\n" for one in messages]
        return "".join([*lines, "assistant: "] if add_generation_prompt else lines)
