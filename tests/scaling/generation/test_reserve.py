"""Duration of the reserve of a promise on tokens, and state of an older version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling import Reason, State
from headroom.scaling.values.observation import GatewayRejections
from scaling.generation.generation_loop import loop, promised
from support.generating_plant import fixed_lengths
from support.generating_plants import QWEN_32B


@pytest.mark.parametrize(("percentile", "budget_s", "spare"), [(0.95, "180s", 0), (0.99, "36s", 1)])
def test_reserve_lasts_as_long_as_the_promised_percentile_allows(
    percentile: float, budget_s: str, spare: int
) -> None:
    """The whole answer, which is not promised, stays at p95."""
    targets = promised(percentile)
    found = loop(QWEN_32B, fixed_lengths(3000, 300), lambda t: 10.0, 4, targets=targets)
    decision = found.run(200.0)
    reserves = [one for one in decision.recommendations if one.rule is Reason.RESERVE]
    assert len(reserves) == spare
    assert all(f"budget lasts {budget_s}" in one.detail for one in reserves)


def test_rejected_requests_of_a_p99_count_in_full() -> None:
    """2 % are rejected: twice what is allowed, not two fifths of it as of a p95."""
    found = loop(QWEN_32B, fixed_lengths(3000, 300), lambda t: 10.0, 4, targets=promised(0.99))
    found.see = lambda seen: replace(
        seen,
        rejected_at_gateway=GatewayRejections(
            time_s=seen.now_s, requests=0.02 * sum(one.arrivals for one in seen.samples)
        ),
    )
    found.run(300.0, act=False)
    assert found.state.budget.late_share == pytest.approx(0.02, abs=0.004)
    assert found.state.risk.level > 0.0


def test_what_an_older_version_learned_of_tokens_is_left_out_and_the_rest_is_kept() -> None:
    saved = State.initial().to_checkpoint() | {"generation": [1.0] * 29, "coldStarts": [42.0]}
    found = State.from_checkpoint(saved)
    assert found.generation.inputs is None
    assert found.generation.ledger.iterations == 0.0
    assert found.cold_starts.seconds == (42.0,)
