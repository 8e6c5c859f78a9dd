"""Results that are computed for all rows of an iteration at once belong to their rows."""

from __future__ import annotations

import struct

import pytest
import torch

from headroom_server.torch_generation.next_token.grammar_masks import hide_forbidden
from headroom_server.torch_generation.next_token.reported import Reported

WIDTH = 40
"""Tokens: two words of 32 bits hold them."""


class Allowing:
    """A grammar that allows these tokens, in this many words."""

    def __init__(self, *tokens: int, words: int = 2) -> None:
        bits = [sum(1 << token % 32 for token in tokens if token // 32 == n) for n in range(words)]
        self._mask = memoryview(struct.pack(f"<{words}I", *bits)).cast("i")
        self.finished = False

    def allowed(self) -> memoryview:
        return self._mask

    def accept(self, token: int) -> bool:
        return True


def logits_of(rows: int) -> torch.Tensor:
    return torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(rows))


def test_each_row_reports_its_own_token_and_alternatives() -> None:
    logits = logits_of(4)
    expected = logits.log_softmax(-1)
    chosen = [3, 39, 7, 11]
    reported = Reported(logits, {0: 2, 1: 0, 3: 5}).of(chosen)
    assert reported.keys() == {0, 1, 3}
    for row, count in {0: 2, 1: 0, 3: 5}.items():
        assert reported[row].logprob == pytest.approx(expected[row, chosen[row]].item())
        best = expected[row].topk(count).indices.tolist()
        assert [one.token for one in reported[row].alternatives] == best
        values = [expected[row, token].item() for token in best]
        assert [one.logprob for one in reported[row].alternatives] == pytest.approx(values)


def test_grammars_hide_tokens_in_their_own_rows_only() -> None:
    logits, before = logits_of(4), logits_of(4)
    # the last one says nothing of the tokens from 32 on: they are forbidden
    grammars = {0: Allowing(1, 39), 2: Allowing(0, 31, 32), 3: Allowing(5, words=1)}
    hide_forbidden(logits, grammars)
    for row, tokens in {0: [1, 39], 1: [*range(WIDTH)], 2: [0, 31, 32], 3: [5]}.items():
        assert logits[row].isfinite().nonzero().flatten().tolist() == tokens
        assert logits[row, tokens].equal(before[row, tokens])
