"""Constraints and tools of a call become grammars that its answer follows."""

from __future__ import annotations

import orjson

from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.values import (
    TokenGrammar,
)
from headroom_server.openai_api.bodies.parameters import (
    ChatCall,
    CompletionCall,
    Constraint,
    ConstraintKind,
    ToolUse,
)
from headroom_server.openai_api.errors import InvalidFieldError


def constraint_of(call: CompletionCall | ChatCall) -> Constraint | None:
    """Return what the answer must match; None if it is free."""
    constraint = call.choices.constraint
    if isinstance(call, ChatCall) and call.tools is not None:
        return _demanded(call.tools) or constraint
    return constraint


def compiled(
    constraint: Constraint | None, count: int, text: ModelText
) -> tuple[TokenGrammar | None, ...]:
    """Return a grammar for each of `count` choices; None without a constraint.

    Raises:
        InvalidFieldError: the constraint is invalid, or this server has none.
    """
    if constraint is None:
        return (None,) * count
    if text.grammars is None:
        raise InvalidFieldError(
            constraint.field,
            f"{constraint.field} must be omitted: this server cannot constrain answers",
        )
    try:
        return tuple(text.grammars.compile(constraint.kind, constraint.text) for _ in range(count))
    except ValueError as error:
        raise InvalidFieldError(
            constraint.field, f"{constraint.field} must be a valid constraint; got {error!s:.200}"
        ) from error


def _demanded(tools: ToolUse) -> Constraint | None:
    """Return the form of an answer that must be a call: its arguments, or a list of calls."""
    functions = [one["function"] for one in tools.tools]
    if tools.forced is not None:
        schema = next(one.get("parameters") for one in functions if one["name"] == tools.forced)
        schema = schema or {"type": "object"}
    elif tools.required:
        schema = {
            "type": "array",
            "minItems": 1,
            "items": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "name": {"const": one["name"]},
                            "parameters": one.get("parameters") or {"type": "object"},
                        },
                        "required": ["name", "parameters"],
                        "additionalProperties": False,
                    }
                    for one in functions
                ]
            },
        }
    else:
        return None
    return Constraint(ConstraintKind.JSON_SCHEMA, orjson.dumps(schema).decode(), "tool_choice")


def constrained(call: CompletionCall | ChatCall) -> bool:
    """Whether the answer has a form: compiling that takes milliseconds."""
    tools = call.tools if isinstance(call, ChatCall) else None
    return call.choices.constraint is not None or (
        tools is not None and (tools.required or tools.forced is not None)
    )
