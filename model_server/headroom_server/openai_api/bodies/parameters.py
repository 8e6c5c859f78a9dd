"""Requests as values: their parameters, independent of a model and of JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from headroom_server.generation.values import Sampling


class ConstraintKind(StrEnum):
    """The language in which an answer's form is given."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    REGEX = "regex"
    LARK = "grammar"
    CHOICE = "choice"


class Constraint(NamedTuple):
    """The form of the answer."""

    kind: ConstraintKind
    text: str
    """The schema as JSON, the regular expression, the grammar, or the choices as a JSON list."""
    field: str
    """The field that gave it, for errors."""


class ToolUse(NamedTuple):
    """The tools of a chat request."""

    tools: tuple[Mapping[str, Any], ...]
    """For the chat template."""
    forced: str | None = None
    """The name of the tool that must be called."""
    required: bool = False
    """Whether some tool must be called."""
    parsed: bool = True
    """Whether calls are recognized in the answer (tool_choice is not "none")."""
    single: bool = False
    """Whether an answer has one call at most (parallel_tool_calls is false)."""


PromptInput = str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Parameters by which the answers to one request are generated and reported."""

    sampling: Sampling
    n: int = 1
    max_tokens: int | None = None
    """None: as many as the context allows (completions: 16)."""
    min_tokens: int = 0
    stops: tuple[str, ...] = ()
    stop_tokens: frozenset[int] = frozenset()
    ignore_eos: bool = False
    include_stop: bool = False
    """Whether the stop string is part of the answer."""
    constraint: Constraint | None = None
    flexible: bool = False
    """Whether it takes only what others leave, as the batch class does (service_tier "flex")."""
    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionCall:
    """POST /v1/completions."""

    model: str
    prompts: tuple[PromptInput, ...]
    choices: Choices
    echo: bool = False
    special_tokens: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """POST /v1/chat/completions."""

    model: str
    messages: tuple[Mapping[str, Any], ...]
    choices: Choices
    tools: ToolUse | None = None
    add_generation_prompt: bool = True
    template_options: Mapping[str, Any]


Call = CompletionCall | ChatCall
