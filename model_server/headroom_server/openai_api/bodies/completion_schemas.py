"""The body of POST /v1/completions. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from headroom_server.openai_api.bodies.schemas import (
    MAX_CHOICES,
    MAX_LOGPROBS,
    Items,
    SamplingFields,
    Token,
)


def _kind_of_prompt(prompt: Any) -> str:
    """Return the tag of its first item's kind: no other kind is tried, or reported."""
    if not isinstance(prompt, list):
        return "of text"
    first = prompt[0] if prompt else None
    if isinstance(first, list):
        return "of token lists"
    return "of texts" if isinstance(first, str) else "of tokens"


Prompt = Annotated[
    Annotated[str, Tag("of text")]
    | Annotated[Items[str], Field(min_length=1, max_length=MAX_CHOICES), Tag("of texts")]
    | Annotated[Items[Token], Field(min_length=1), Tag("of tokens")]
    | Annotated[
        Items[Annotated[Items[Token], Field(min_length=1)]],
        Field(min_length=1, max_length=MAX_CHOICES),
        Tag("of token lists"),
    ],
    Discriminator(_kind_of_prompt),
]


class CompletionFields(SamplingFields):
    """The body of POST /v1/completions."""

    prompt: Prompt
    echo: bool | None = None
    logprobs: int | None = Field(None, ge=0, le=MAX_LOGPROBS)
    best_of: int | None = Field(None, ge=1, le=MAX_CHOICES)
    suffix: Literal[""] | None = None
    """Only empty: no model here fills in the middle."""
    add_special_tokens: bool | None = None
