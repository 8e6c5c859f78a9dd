"""Keys and values of cached answers of generated text. Pure.

What is cached are tokens, so that streams and whole answers, completions and chats have the same
entries. Tenants share none: response times would show what others asked.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

from headroom_server.generation.values import (
    Alternative,
    FinishReason,
    GenerationRequest,
    SampledToken,
)

FORMAT = "headroom generated 1"
NUMBER = re.compile(r"\d+")
KEY_BYTES = 32
DIGEST_BYTES = 16
ENTRY_BYTES = 768
TOKEN_BYTES = 96
"""Memory of a token: an object of the tuple, its number, its place."""
ALTERNATIVE_BYTES = 128


class CachedChoice(NamedTuple):
    """One choice's tokens. No reason: a stop string ended it."""

    tokens: tuple[SampledToken, ...]
    finish: FinishReason | None


CachedAnswer = tuple[CachedChoice, ...]


def repeatable(requests: Sequence[GenerationRequest]) -> bool:
    """Return whether equal requests get equal answers."""
    return all(request.sampling.greedy for request in requests)


def key_of(
    identity: str, requests: Sequence[GenerationRequest], stops: Sequence[str], *, prompts: bool
) -> bytes:
    """Return the key of a call's answer.

    `prompts`: whether the prompts are part of it. Without them it is what all answers must have in
    common that may be given in place of each other.
    """
    digest = blake2b(digest_size=KEY_BYTES)
    digest.update(repr((FORMAT, identity, tuple(stops), len(requests))).encode())
    for one in requests:
        numbers = array("q", one.prompt if prompts else ())
        sampling = replace(one.sampling, seed=None, logit_bias={})
        bias = sorted(one.sampling.logit_bias.items())
        most = one.max_tokens if prompts else 0
        ends = sorted(one.stop_tokens)
        asked = (len(numbers), most, sampling, bias, ends, one.constraint, one.min_tokens)
        digest.update(repr((one.tenant, asked)).encode())
        digest.update(numbers.tobytes())
    return digest.digest()


def scope_of(common: bytes, context: bytes, text: str) -> bytes:
    """Return what must be equal for one answer to replace another: all but a text's words.

    Its numbers must be equal too: to an embedding, 2023 and 2024 are nearly the same word (the
    cosine of two questions that differ in them is 0.99).
    """
    digest = blake2b(context, key=common, digest_size=KEY_BYTES)
    digest.update(repr(NUMBER.findall(text)).encode())
    return digest.digest()


def size_of(answer: CachedAnswer) -> int:
    """Return the bytes that an answer holds in memory."""
    tokens = sum(len(choice.tokens) for choice in answer)
    others = sum(len(one.alternatives) for choice in answer for one in choice.tokens)
    return ENTRY_BYTES + TOKEN_BYTES * tokens + ALTERNATIVE_BYTES * others


def encoded(key: bytes, answer: CachedAnswer) -> bytes:
    """Encode the value of a key for a store: a digest of key and value, then JSON."""
    value = json.dumps([[choice.tokens, choice.finish] for choice in answer]).encode()
    return blake2b(value, digest_size=DIGEST_BYTES, key=key).digest() + value


def decoded(key: bytes, value: bytes) -> CachedAnswer | None:
    """Decode a value; None if it does not belong to this key."""
    payload = value[DIGEST_BYTES:]
    if value[:DIGEST_BYTES] != blake2b(payload, digest_size=DIGEST_BYTES, key=key).digest():
        return None
    try:
        return tuple(
            CachedChoice(
                tuple(
                    SampledToken(token, logprob, tuple(Alternative(*one) for one in others))
                    for token, logprob, others in tokens
                ),
                None if finish is None else FinishReason(finish),
            )
            for tokens, finish in json.loads(payload)
        )
    except (TypeError, ValueError):
        return None
