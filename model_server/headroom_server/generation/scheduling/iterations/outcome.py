"""Applies the result of an iteration: delivers tokens, continues or ends sequences. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from headroom_server.generation.scheduling.iterations.speculation import learn
from headroom_server.generation.scheduling.sequences import LiveSequence, Phase
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.values import (
    Chunk,
    Delivery,
    FinishReason,
    Iteration,
    IterationResult,
    SampledToken,
)

_new = tuple.__new__


class Outcome:
    """The deliveries of one iteration, and which sequences ended or got their first token."""

    __slots__ = ("deliveries", "ended", "first")

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.ended: list[tuple[LiveSequence, FinishReason]] = []
        self.first: list[LiveSequence] = []


def apply(
    state: SchedulerState, iteration: Iteration, result: IterationResult, ended_s: float
) -> Outcome:
    """Append the sampled tokens, but for sequences that have ended."""
    outcome, decode, plain_count = Outcome(), Phase.DECODE, 0
    deliver = outcome.deliveries.append
    for chunk, sampled in zip(iteration.chunks, result.sampled, strict=True):
        sequence = cast(LiveSequence, chunk[0])
        if sequence.phase is decode and sequence.plain and len(sampled) == 1 and not chunk[5]:
            one = sampled[0]
            token = one[0]
            sequence.tokens.append(token)
            plain_count += 1
            left = sequence.left = sequence.left - 1
            request = sequence.request
            if token in request.stop_tokens:
                reason: FinishReason | None = FinishReason.STOP
            else:
                reason = None if left else FinishReason.LENGTH
            deliver(_new(Delivery, (request.key, (one,), reason, 0, "", None)))
            if reason is not None:
                outcome.ended.append((sequence, reason))
        elif sequence.phase is not Phase.ENDED:
            _apply_any(state, sequence, chunk, sampled, outcome, ended_s)
    state.context_tokens += plain_count
    state.count("generated_tokens", plain_count)
    return outcome


def _apply_any(
    state: SchedulerState,
    sequence: LiveSequence,
    chunk: Chunk,
    sampled: Sequence[SampledToken],
    outcome: Outcome,
    ended_s: float,
) -> None:
    if sequence.phase is Phase.PREFILL:
        sequence.computed = chunk.start + len(chunk.tokens)
        state.memory.name_computed(sequence, chunk.start)
        state.count("computed_prompt_tokens", len(chunk.tokens))
        if not chunk.samples:
            return
    if chunk.drafts:
        accepted = len(sampled) - 1
        learn(sequence, chunk.drafts, accepted)
        state.count("accepted_tokens", accepted)
        state.count("rejected_tokens", chunk.drafts - accepted)
    taken: list[SampledToken] = []
    reason: FinishReason | None = None
    for one in sampled:
        taken.append(one)
        reason = _append(sequence, one.token)
        if reason is not None:
            break
    state.count("generated_tokens", len(taken))
    cached, started_s = 0, None
    if sequence.first_token_s is None:
        sequence.first_token_s = ended_s
        cached, started_s = sequence.cached_tokens, sequence.started_s
        outcome.first.append(sequence)
    if sequence.phase is Phase.DECODE:
        state.context_tokens += len(taken)
    else:
        state.begin_decode(sequence)
    key = sequence.request.key
    outcome.deliveries.append(Delivery(key, tuple(taken), reason, cached, "", started_s))
    if reason is not None:
        outcome.ended.append((sequence, reason))


def _append(sequence: LiveSequence, token: int) -> FinishReason | None:
    """Append a token; return why the sequence ends with it, if it does."""
    request = sequence.request
    sequence.tokens.append(token)
    sequence.left -= 1
    if token in request.stop_tokens:
        return FinishReason.STOP
    if request.grammar is not None:
        if not request.grammar.accept(token):
            return FinishReason.CONSTRAINT
        if request.grammar.finished:
            return FinishReason.STOP
    return None if sequence.left else FinishReason.LENGTH
