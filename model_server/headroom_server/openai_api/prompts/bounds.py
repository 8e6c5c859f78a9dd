"""Bounds on prompts and answers: bytes, the model's context, reported probabilities. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headroom_server.generation.values import GenerationLimits
from headroom_server.openai_api.bodies.parameters import Call, ChatCall, Choices
from headroom_server.openai_api.bodies.schemas import MAX_PROBABILITIES
from headroom_server.openai_api.errors import ContextLengthError, InvalidFieldError

LEAST_BODY_BYTES = 64 * 1024
BYTES_PER_TOKEN = 64
"""Bytes per token of the longest text that is tokenized: text has 4 to 5 bytes per token, spaces up
to 128."""


def most_body_bytes(limits: GenerationLimits, max_body_bytes: int) -> int:
    """Return the most bytes of a body: tokenizing a text that cannot fit the context costs CPU."""
    return min(max_body_bytes, LEAST_BODY_BYTES + BYTES_PER_TOKEN * limits.context_tokens)


def context_of(limits: GenerationLimits) -> int:
    """Return the most tokens of a prompt and its answer: the model's context, if memory has it."""
    return min(limits.context_tokens, limits.blocks * limits.block_tokens)


def most_reported(choices: Choices) -> int | None:
    """Return the most tokens of a choice whose probabilities wait in memory; None: any number."""
    logprobs = choices.sampling.logprobs
    if logprobs is None or choices.stream:
        return None
    return MAX_PROBABILITIES // (choices.n * (1 + logprobs))


def check_prompts(call: Call, prompts: Sequence[Sequence[int]], limits: GenerationLimits) -> None:
    """Check that the tokens of a call's prompts and its answers fit.

    Raises:
        InvalidFieldError: a prompt is empty or does not fit the context with its answer, a token is
            unknown, or an answer reports more than may wait in memory.
    """
    field = "messages" if isinstance(call, ChatCall) else "prompt"
    _check_tokens(call.choices, limits)
    _check_reported(call.choices, len(prompts))
    for prompt in prompts:
        _check_prompt(prompt, call.choices, limits, field)


def _check_prompt(
    prompt: Sequence[int], choices: Choices, limits: GenerationLimits, field: str
) -> None:
    most = context_of(limits)
    if not prompt:
        raise InvalidFieldError(field, f"{field} must have at least 1 token; got 0")
    if len(prompt) + (choices.max_tokens or 1) > most:
        wanted = choices.max_tokens
        answer = "" if wanted is None else f", {wanted} in the completion"
        raise ContextLengthError(  # in OpenAI's words, by which clients recognize it
            field,
            f"This model's maximum context length is {most} tokens; got {len(prompt)} in the "
            f"{field}{answer}. Shorten the {field} or lower max_tokens.",
        )
    highest = max(prompt)
    if highest >= limits.vocabulary:
        raise InvalidFieldError(
            field, f"{field} must have tokens below {limits.vocabulary}; got {highest}"
        )


def _check_reported(choices: Choices, prompts: int) -> None:
    most = most_reported(choices)
    if most is not None and prompts * (choices.max_tokens or 1) > most:
        raise InvalidFieldError(
            "logprobs",
            f"logprobs must be of at most {MAX_PROBABILITIES} tokens and alternatives "
            f"unless stream is true; got {prompts} prompts with {choices.n} choices of "
            f"{choices.max_tokens or 1} tokens",
        )


def _check_tokens(choices: Choices, limits: GenerationLimits) -> None:
    for field, tokens in (
        ("logit_bias", choices.sampling.logit_bias),
        ("stop_token_ids", choices.stop_tokens),
    ):
        if tokens and max(tokens) >= limits.vocabulary:
            raise InvalidFieldError(
                field, f"{field} must have tokens below {limits.vocabulary}; got {max(tokens)}"
            )
