"""Constraints and required tools of a call become grammars that its answer follows."""

from __future__ import annotations

from typing import NamedTuple

from headroom_server.generation.text.constraint_owner import Owner
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.token_grammar import TokenGrammar, TooComplexError
from headroom_server.openai_api.bodies.json_text import json_text
from headroom_server.openai_api.bodies.parameters import (
    Call,
    ChatCall,
    Constraint,
    ConstraintKind,
    ToolUse,
)
from headroom_server.openai_api.errors import InvalidFieldError


class Compiled(NamedTuple):
    """The constraint of a call, compiled."""

    grammars: tuple[TokenGrammar, ...]
    """One for each choice."""
    constraint: tuple[str, str]
    """Kind and text."""


def constrained(call: Call) -> bool:
    """Return whether the answer has a form: compiling that takes milliseconds."""
    tools = call.tools if isinstance(call, ChatCall) else None
    return call.choices.constraint is not None or (
        tools is not None and (tools.required or tools.forced is not None)
    )


def known(call: Call, count: int, text: ModelText) -> Compiled | None:
    """Return grammars of a constraint that is compiled already, for `count` choices of the call."""
    if text.grammars is None:
        return None
    kind, form, _ = constraint_of(call)
    grammars = []
    for _ in range(count):
        grammar = text.grammars.known(kind, form)
        if grammar is None:
            return None
        grammars.append(grammar)
    return Compiled(tuple(grammars), (kind, form))


def compiled(call: Call, count: int, text: ModelText, owner: Owner, *, quick: bool) -> Compiled:
    """Return a grammar for each of `count` choices of an owner's call; may take seconds.

    Raises:
        TooComplexError: `quick`, and compiling takes more than ordinary constraints do.
        InvalidFieldError: the constraint is invalid or too complex, or this server has none.
        QueueFullError: those in use take too much memory.
    """
    kind, form, field = constraint_of(call)
    if text.grammars is None:
        raise InvalidFieldError(
            field, f"{field} must be omitted: this server cannot constrain answers"
        )
    try:
        grammars = tuple(
            text.grammars.compile(kind, form, quick=quick, owner=owner) for _ in range(count)
        )
    except ValueError as error:
        if quick and isinstance(error, TooComplexError):
            raise
        raise InvalidFieldError(
            field, f"{field} must be a valid constraint; got {error!s:.200}"
        ) from error
    return Compiled(grammars, (kind, form))


def constraint_of(call: Call) -> Constraint:
    """Return the constraint that the answer of a constrained call must match."""
    tools = call.tools if isinstance(call, ChatCall) else None
    found = (tools and _demanded(tools)) or call.choices.constraint
    assert found is not None
    return found


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
            **({"maxItems": 1} if tools.single else {}),
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
    return Constraint(ConstraintKind.JSON_SCHEMA, json_text(schema).decode(), "tool_choice")
