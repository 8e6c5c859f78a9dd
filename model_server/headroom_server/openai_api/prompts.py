"""Calls become requests of the engine: prompts are rendered, tokenized and bounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from headroom_server.generation.text.minimum_length import MinimumLength
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.values import (
    GenerationLimits,
    GenerationRequest,
    Sampling,
    TokenGrammar,
)
from headroom_server.openai_api.bodies.parameters import ChatCall, Choices, CompletionCall, ToolUse
from headroom_server.openai_api.bodies.schemas import MAX_PROBABILITIES
from headroom_server.openai_api.constraints import compiled, constrained, constraint_of
from headroom_server.openai_api.errors import ContextLengthError, InvalidFieldError
from headroom_server.scheduling.request_options import RequestOptions

LEAST_BODY_BYTES = 64 * 1024
BYTES_PER_TOKEN = 64
"""Bytes per token of the longest text that is tokenized: text has 4 to 5 bytes per token, spaces up
to 128."""
MOST_MESSAGES_AT_ONCE = 32
"""Messages of a chat that are rendered on the event loop; 470 empty ones are 16 KiB, and took 16 ms
of it."""


def most_body_bytes(limits: GenerationLimits, max_body_bytes: int) -> int:
    """Return the most bytes of a body: tokenizing a text that cannot fit the context costs CPU."""
    return min(max_body_bytes, LEAST_BODY_BYTES + BYTES_PER_TOKEN * limits.context_tokens)


def context_of(limits: GenerationLimits) -> int:
    """Return the most tokens of a prompt and its answer: the model's context, if memory has it."""
    return min(limits.context_tokens, limits.blocks * limits.block_tokens)


class EncodedCall(NamedTuple):
    """A call whose prompts are tokens."""

    prompts: tuple[tuple[int, ...], ...]
    grammars: tuple[TokenGrammar | None, ...]
    """One for each choice: prompts times n."""
    constraint: tuple[str, str] | None = None
    """Kind and text of what they were compiled from."""


class PromptText(NamedTuple):
    """A prompt as it is tokenized."""

    text: str
    special: bool
    """Whether the tokenizer adds its special tokens."""


def only_prompt(call: CompletionCall | ChatCall, text: ModelText) -> PromptText | None:
    """Render the prompt of a call; None: it has several, or they are tokens.

    Raises:
        InvalidRequestError: the messages cannot be rendered.
    """
    if isinstance(call, ChatCall):
        return PromptText(_chat_prompt(call, text), special=False)
    prompt, *others = call.prompts
    if others or not isinstance(prompt, str):
        return None
    return PromptText(prompt, call.special_tokens)


def encode_call(
    call: CompletionCall | ChatCall,
    text: ModelText,
    limits: GenerationLimits,
    only: tuple[int, ...] | None = None,
) -> EncodedCall:
    """Render and tokenize prompts and compile the constraint. Long prompts take milliseconds.

    `only`: the tokens of the only prompt, if they are known.

    Raises:
        InvalidRequestError: prompt and answer do not fit the context, or a constraint is invalid.
    """
    field = "messages" if isinstance(call, ChatCall) else "prompt"
    if only is not None:
        prompts = [only]
    elif isinstance(call, ChatCall):
        prompts = [tuple(text.tokenizer.encode(_chat_prompt(call, text), special=False))]
    else:
        prompts = [
            tuple(text.tokenizer.encode(one, special=call.special_tokens))
            if isinstance(one, str)
            else one
            for one in call.prompts
        ]
    _check_tokens(call.choices, limits)
    _check_reported(call.choices, len(prompts))
    for prompt in prompts:
        _check_prompt(prompt, call.choices, limits, field)
    constraint = constraint_of(call)
    grammars = compiled(constraint, len(prompts) * call.choices.n, text)
    return EncodedCall(tuple(prompts), grammars, constraint and (constraint.kind, constraint.text))


def build_requests(
    call: CompletionCall | ChatCall,
    encoded: EncodedCall,
    text: ModelText,
    limits: GenerationLimits,
    options: RequestOptions,
    *,
    arrived_s: float,
    key: Callable[[], int],
) -> list[GenerationRequest]:
    """Return a request for each choice: those of the first prompt, then those of the next."""
    choices = call.choices
    stop_tokens = choices.stop_tokens
    if not choices.ignore_eos:
        stop_tokens |= text.tokenizer.eos_tokens
    requests = []
    grammars = iter(encoded.grammars)
    for prompt in encoded.prompts:
        most = choices.max_tokens or _usual_tokens(choices, context_of(limits) - len(prompt))
        for number in range(choices.n):
            grammar = next(grammars)
            if choices.min_tokens and stop_tokens:
                grammar = MinimumLength(choices.min_tokens, stop_tokens, limits.vocabulary, grammar)
            requests.append(
                GenerationRequest(
                    key=key(),
                    prompt=prompt,
                    max_tokens=most,
                    sampling=_seeded(choices, number),
                    stop_tokens=stop_tokens,
                    grammar=grammar,
                    constraint=encoded.constraint,
                    min_tokens=choices.min_tokens,
                    priority=options.priority,
                    tenant=options.tenant,
                    batch_class=choices.flexible or options.batch,
                    arrived_s=arrived_s,
                    first_token_deadline_s=_due(arrived_s, options.first_token_deadline_s),
                    deadline_s=_due(arrived_s, options.deadline_s),
                )
            )
    return requests


def _usual_tokens(choices: Choices, free: int) -> int:
    """Return the bound of a chat without `max_tokens`: the context, or what may be reported."""
    most = _most_reported(choices)
    return free if most is None else max(1, min(free, most))


def _most_reported(choices: Choices) -> int | None:
    """Return the most tokens of a choice whose probabilities wait in memory; None: any number."""
    logprobs = choices.sampling.logprobs
    if logprobs is None or choices.stream:
        return None
    return MAX_PROBABILITIES // (choices.n * (1 + logprobs))


def _due(arrived_s: float, seconds: float | None) -> float | None:
    return None if seconds is None else arrived_s + seconds


def _seeded(choices: Choices, number: int) -> Sampling:
    """Return the sampling of a choice: the choices of one seed differ, and repeat."""
    sampling = choices.sampling
    if sampling.seed is None or not number:
        return sampling
    return replace(sampling, seed=(sampling.seed + number + 2**63) % 2**64 - 2**63)


def _chat_prompt(call: ChatCall, text: ModelText) -> str:
    if text.chat is None:
        raise InvalidFieldError(
            "messages",
            "messages require a chat template, which this model does not have; use /v1/completions",
        )
    described = _described(call.tools)
    if described and not text.chat.takes_tools:
        raise InvalidFieldError(
            "tools", "tools must be omitted: this model's chat template does not describe tools"
        )
    return text.chat.render(
        call.messages,
        tools=described,
        add_generation_prompt=call.add_generation_prompt,
        options=call.template_options,
    )


def _described(tools: ToolUse | None) -> Sequence[Mapping[str, Any]] | None:
    if tools is None or not tools.parsed:
        return None
    return tools.tools


def _check_prompt(
    prompt: Sequence[int], choices: Choices, limits: GenerationLimits, field: str
) -> None:
    most = context_of(limits)
    if not prompt:
        raise InvalidFieldError(field, f"{field} must have at least 1 token; got 0")
    if len(prompt) + (choices.max_tokens or 1) > most:
        wanted = "" if choices.max_tokens is None else f" and {choices.max_tokens} for the answer"
        raise ContextLengthError(
            field,
            f"{field} and answer must have at most {most} tokens, the model's context; got "
            f"{len(prompt)} in the {field}{wanted}. Shorten the {field} or lower max_tokens.",
        )
    highest = max(prompt)
    if highest >= limits.vocabulary:
        raise InvalidFieldError(
            field, f"{field} must have tokens below {limits.vocabulary}; got {highest}"
        )


def _check_reported(choices: Choices, prompts: int) -> None:
    most = _most_reported(choices)
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


def takes_long(call: CompletionCall | ChatCall) -> bool:
    """Whether encoding takes longer than the event loop has for a request, however short it is.

    A chat template takes 35 us for each message, which is 30 bytes of a body where it is empty.
    """
    many = isinstance(call, ChatCall) and len(call.messages) > MOST_MESSAGES_AT_ONCE
    return many or constrained(call)


def echoes(call: CompletionCall | ChatCall, encoded: EncodedCall, text: ModelText) -> Sequence[str]:
    """Return the text before each choice: the prompt if it is echoed."""
    n = call.choices.n
    if isinstance(call, ChatCall) or not call.echo:
        return ("",) * (n * len(encoded.prompts))
    found: list[str] = []
    for given, tokens in zip(call.prompts, encoded.prompts, strict=True):
        if isinstance(given, str):
            before = given
        else:
            detokenizer = text.tokenizer.detokenizer()
            before = detokenizer.push(tokens) + detokenizer.flush()
        found += [before] * n
    return found
