"""Chooses the tokens of an iteration from its logits, and verifies drafts.

Every position has its own uniform number, so the token of a position is the same whether it was
drafted or not. A draft is accepted if it equals that token. For a proposal that does not depend on
that number this is exact: a draft d is accepted with its probability p(d), and what is chosen
instead has the distribution p without d, which is the rule of Leviathan et al. 2023 (algorithm 1)
for a proposal of one point. Greedy requests are the same with a distribution of one point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from headroom_server.generation.values import Chunk, SampledToken
from headroom_server.torch_generation.next_token.adjustments import KeptAdjustments, adjust, adjusts
from headroom_server.torch_generation.next_token.chance import seed_of, uniform
from headroom_server.torch_generation.next_token.distributions import draw
from headroom_server.torch_generation.next_token.grammar_masks import hide_forbidden
from headroom_server.torch_generation.next_token.reported import Reported, ReportedRow

NOT_FINITE = "the model's numbers must be finite; got NaN or infinity"
_NOTHING = -1
"""In place of a token that was chosen from logits that are not finite."""


class Row(NamedTuple):
    """One row of logits: the token at `position` of the chunk's sequence is chosen from it."""

    chunk: Chunk
    draft: int
    """Number of drafts before the position."""

    @property
    def position(self) -> int:
        """The position of the chosen token."""
        return self.chunk.start + len(self.chunk.tokens) - self.chunk.drafts + self.draft

    @property
    def drafts(self) -> Sequence[int]:
        """The drafts before the position."""
        chunk = self.chunk
        first = len(chunk.tokens) - chunk.drafts
        return chunk.tokens[first : first + self.draft]


def rows_of(chunks: Sequence[Chunk]) -> list[Row]:
    """Return the rows of an iteration in the order of its logits."""
    return [
        Row(chunk, draft) for chunk in chunks if chunk.samples for draft in range(chunk.drafts + 1)
    ]


def sample(
    logits: torch.Tensor,
    chunks: Sequence[Chunk],
    process_seed: int,
    kept: KeptAdjustments | None = None,
) -> list[Sequence[SampledToken]]:
    """Return per chunk the accepted drafts and the model's own token after them.

    `kept` has what earlier calls made of the same requests.

    Raises:
        FloatingPointError: a token's logits are not finite.
    """
    rows, kept = rows_of(chunks), kept or KeptAdjustments()
    if not rows:
        return [() for _ in chunks]
    reported = Reported(
        logits, {at: n for at, row in enumerate(rows) if (n := _logprobs(row)) is not None}
    )
    # before what a client adds; NaN counts as the greatest number, and is not below infinity
    finite = logits.amax(-1) < math.inf
    for number, row in enumerate(rows):
        if adjusts(row.chunk.sequence.request):
            adjust(logits[number], row.chunk.sequence, row.drafts, kept)
    hide_forbidden(
        logits,
        {
            number: grammar
            for number, row in enumerate(rows)
            if (grammar := row.chunk.sequence.request.grammar) is not None
        },
    )
    chosen = _choose(logits, rows, process_seed).where(finite, _NOTHING).tolist()
    by_place = reported.of(chosen)
    sampled: list[Sequence[SampledToken]] = []
    at = 0
    for chunk in chunks:
        if not chunk.samples:
            sampled.append(())
            continue
        own = chosen[at : at + chunk.drafts + 1]
        own = own[: _accepted(chunk, own) + 1]
        if own[-1] == _NOTHING:
            raise FloatingPointError(NOT_FINITE)
        sampled.append(
            [_sampled(token, by_place.get(at + number)) for number, token in enumerate(own)]
        )
        at += chunk.drafts + 1
    return sampled


def _accepted(chunk: Chunk, own: Sequence[int]) -> int:
    """Return how many drafts equal the model's own tokens."""
    if chunk.sequence.request.grammar is not None:
        return 0  # the grammar's mask is known for the first token only
    drafts = chunk.tokens[len(chunk.tokens) - chunk.drafts :]
    for number, draft in enumerate(drafts):
        if own[number] != draft:
            return number
    return chunk.drafts


def _choose(logits: torch.Tensor, rows: Sequence[Row], process_seed: int) -> torch.Tensor:
    chosen = logits.argmax(-1)
    drawn = [at for at, row in enumerate(rows) if not row.chunk.sequence.request.sampling.greedy]
    if drawn:
        uniforms: list[float] = []
        for at in drawn:
            request = rows[at].chunk.sequence.request
            seed = request.sampling.seed
            own = seed_of(process_seed, request.key) if seed is None else seed
            uniforms.append(uniform(own, rows[at].position))
        samplings = [rows[at].chunk.sequence.request.sampling for at in drawn]
        where = torch.tensor(drawn, device=logits.device)
        chosen[where] = draw(logits.index_select(0, where), samplings, uniforms)
    return chosen


def _logprobs(row: Row) -> int | None:
    return row.chunk.sequence.request.sampling.logprobs


def _sampled(token: int, reported: ReportedRow | None) -> SampledToken:
    return SampledToken(token) if reported is None else SampledToken(token, *reported)
