"""The decodes of an iteration: a token for every sequence, drafts, and room in memory. Pure."""

from __future__ import annotations

from typing import NamedTuple

from headroom_server.generation.scheduling.iterations.speculation import DraftCounts, recover
from headroom_server.generation.scheduling.lookup import LookupIndex
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.values import Chunk

_new = tuple.__new__
STEP_WEIGHT = 0.1
STEP_OUTLIER = 3.0
"""A draft model's step counts as at most this many times slower than usual: it computes what it has
not seen of new sequences first."""


class Drafts(NamedTuple):
    """Drafts that a draft model is to propose."""

    sequences: tuple[LiveSequence, ...]
    most: int
    """Tokens per sequence."""


def plan_decodes(state: SchedulerState, *, pause: bool = False) -> list[Chunk]:
    """Return a chunk for each decoding sequence; preempts where memory is short.

    With `pause`, those of the batch class keep their memory and wait.
    """
    if state.options.max_drafts and state.decoding:
        _propose(state)
    chunks: list[Chunk] = []
    add, short = chunks.append, None
    for sequence in state.decoding.values():
        if pause and sequence.request.batch_class:
            continue
        tokens = sequence.tokens
        count = len(tokens)
        if count > sequence.grown_tokens:  # a block is full
            if not state.memory.grow(sequence, count):
                short = [sequence] if short is None else [*short, sequence]
                continue
            state.charges.progress(sequence)
        drafts = sequence.proposed
        if drafts:
            sequence.proposed = ()
            if state.memory.grow(sequence, count + len(drafts)):
                verified = (tokens[-1], *drafts)
                add(Chunk(sequence, count - 1, verified, sequence.blocks, True, len(drafts)))
                continue
        add(_new(Chunk, (sequence, count - 1, (tokens[-1],), sequence.blocks, True, 0)))
    if short:
        _make_room(state, short, chunks)
    return chunks


def _make_room(state: SchedulerState, short: list[LiveSequence], chunks: list[Chunk]) -> None:
    """Preempt the last in rank until the best of those that are short of memory have grown."""
    for sequence in sorted(short, key=_protection):
        while sequence.key in state.decoding:
            if state.memory.grow(sequence, len(sequence.tokens)):
                start = len(sequence.tokens) - 1
                last = (sequence.tokens[-1],)
                chunks.append(Chunk(sequence, start, last, sequence.blocks, samples=True))
                break
            state.preempt(last_protected(state))
    chunks[:] = [chunk for chunk in chunks if chunk.sequence.request.key in state.decoding]


def last_protected(state: SchedulerState) -> LiveSequence:
    """Return the running sequence that is preempted first."""
    return max((*state.prefilling, *state.decoding.values()), key=_protection)


def _protection(sequence: LiveSequence) -> tuple[bool, int, float, float, int]:
    return sequence.protection


def wanted_drafts(state: SchedulerState) -> Drafts | None:
    """Return which sequences a draft model is to extend, and by how much; None: none."""
    if not state.options.draft_model or not state.options.max_drafts or not state.decoding:
        return None
    eligible = tuple(one for one in state.decoding.values() if one.plain and one.left > 1)
    if not eligible:
        return None
    counts = DraftCounts(
        state.cost,
        len(state.decoding),
        state.context_tokens,
        state.options.max_drafts,
        step_s=state.draft_step_s,
    )
    mean = sum(one.acceptance for one in eligible) / len(eligible)
    count = min(counts.best(mean), state.limits.max_iteration_tokens // len(state.decoding) - 1)
    if count < 1:
        for one in eligible:
            recover(one)
        return None
    return Drafts(eligible, count)


def learn_step(state: SchedulerState, seconds: float) -> None:
    """Learn the time in which a draft model proposes a token for every sequence."""
    usual_s = state.draft_step_s
    if not usual_s:
        state.draft_step_s = seconds
    else:
        state.draft_step_s += STEP_WEIGHT * (min(seconds, STEP_OUTLIER * usual_s) - usual_s)


def _propose(state: SchedulerState) -> None:
    """Look up drafts where none came from a draft model, and bound all of them."""
    decoding, options = state.decoding, state.options
    room = state.limits.max_iteration_tokens - len(decoding)
    counts = DraftCounts(state.cost, len(decoding), state.context_tokens, options.max_drafts)
    hopeful = counts.best(1.0)
    for sequence in decoding.values():
        most = min(room, sequence.left - 1)
        if most < 1 or not sequence.plain:
            sequence.proposed = ()
            continue
        if not options.draft_model and hopeful:
            count = counts.best(sequence.acceptance)
            if count:
                if sequence.lookup is None:
                    sequence.lookup = LookupIndex()
                sequence.proposed = sequence.lookup.propose(sequence.tokens, count)
            else:
                recover(sequence)
        sequence.proposed = sequence.proposed[:most]
        room -= len(sequence.proposed)
