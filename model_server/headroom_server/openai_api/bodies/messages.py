"""Messages and tools of a chat, as templates expect them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from headroom_server.openai_api.bodies.chat_schemas import ChatFields, Message, ToolChoice
from headroom_server.openai_api.bodies.parameters import ToolUse
from headroom_server.openai_api.errors import InvalidFieldError


def tools_of(fields: ChatFields) -> ToolUse | None:
    """Return the tools of a chat and which of them must be called; None without tools."""
    choice = fields.tool_choice
    if not fields.tools:
        if choice not in (None, "none", "auto"):
            raise InvalidFieldError("tool_choice", "tool_choice requires tools")
        return None
    tools = tuple(one.model_dump(exclude_none=True) for one in fields.tools)
    names = [one.function.name for one in fields.tools]
    if isinstance(choice, ToolChoice):
        if choice.function.name not in names:
            raise InvalidFieldError(
                "tool_choice",
                f"tool_choice must name one of the tools; got {choice.function.name!r:.80}",
            )
        return ToolUse(tools, forced=choice.function.name)
    single = fields.parallel_tool_calls is False
    required, parsed = choice == "required", choice != "none"
    return ToolUse(tools, required=required, parsed=parsed, single=single)


def template_message(message: Message) -> Mapping[str, Any]:
    """Return a message as chat templates expect it: text as one string, arguments as objects."""
    role = "system" if message.role == "developer" else message.role
    fields: dict[str, Any] = {"role": role}
    content = message.content
    if isinstance(content, list):
        content = "\n".join(part.text for part in content)
    fields["content"] = content if content is not None else (message.refusal or "")
    for name in ("name", "tool_call_id", "reasoning_content"):
        value = getattr(message, name)
        if value is not None:
            fields[name] = value
    if message.tool_calls:
        fields["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.function.name,
                    "arguments": _arguments(call.function.arguments),
                },
            }
            for call in message.tool_calls
        ]
    return fields


def _arguments(text: str) -> Any:
    try:
        return orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        return text
