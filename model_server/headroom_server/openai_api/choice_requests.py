"""An encoded call becomes a request of the engine for each choice. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headroom_server.generation.text.minimum_length import MinimumLength
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.values import GenerationLimits, GenerationRequest, Sampling
from headroom_server.openai_api.bodies.parameters import Call, ChatCall, Choices
from headroom_server.openai_api.prompts.bounds import context_of, most_reported
from headroom_server.openai_api.prompts.encoder import EncodedCall
from headroom_server.protocols.request_options import RequestOptions


def build_requests(
    call: Call,
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
    """Return the bound of a chat without `max_tokens`: the context, or its reportable tokens."""
    most = most_reported(choices)
    return free if most is None else max(1, min(free, most))


def _due(arrived_s: float, seconds: float | None) -> float | None:
    return None if seconds is None else arrived_s + seconds


def _seeded(choices: Choices, number: int) -> Sampling:
    """Return the sampling of a choice: the choices of one seed differ, and repeat."""
    sampling = choices.sampling
    if sampling.seed is None or not number:
        return sampling
    return replace(sampling, seed=(sampling.seed + number + 2**63) % 2**64 - 2**63)


def echoes(call: Call, encoded: EncodedCall, text: ModelText) -> Sequence[str]:
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
