"""The bound of the replicas for the rate while only full batches were seen."""

from __future__ import annotations

import pytest

from headroom.scaling import CostModel, Freshness, Reason, ReplicaCounts, Signal, Signals
from headroom.scaling.cost.claims import Claim
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.forecast.forecast import Expected, Rates
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.rules.rule_inputs import RuleInputs
from headroom.scaling.rules.rule_results import evaluate_rules
from headroom.scaling.windows.window_totals import BatchStats
from support.fakes_scaling import policy

FULL = CostModel(fixed_s=0.013, per_item_s=0.0, max_batch=32)
"""Cost that full batches of 13 ms alone teach: one request takes as long."""
SILENT = Claim(max_batch=32)


def requested(
    rate_rps: float,
    ready: int,
    warming: int = 0,
    *,
    full_batches_only: bool = False,
    settled: bool = True,
) -> int:
    """The replicas that the latency rule asks for within 25 ms."""
    rates = Rates(for_ceiling_rps=rate_rps, for_latency_rps=rate_rps)
    results = evaluate_rules(
        RuleInputs(
            policy=policy(latency_target_s=0.025, max_replicas=100),
            expected=Expected(later=rates, most=rates, burst_rps=None),
            signals=Signals(arrival_rps=Signal(freshness=Freshness.FRESH, value=rate_rps)),
            tail=TailLatency(cost=FULL, percentile=0.95),
            counts=ReplicaCounts(ready=ready, warming=warming),
            target_s=0.025,
            full_batches_only=full_batches_only,
            settled=settled,
        )
    )
    return next(one.replicas for one in results.recommendations if one.rule is Reason.LATENCY_MODEL)


@pytest.mark.parametrize(
    ("rate_rps", "ready", "warming", "settled", "replicas"),
    [
        pytest.param(3000.0, 1, 0, True, 3, id="thrice the ready ones"),
        pytest.param(3000.0, 3, 0, True, 9, id="again once they have served"),
        pytest.param(3000.0, 3, 0, False, 3, id="not before"),
        pytest.param(3000.0, 1, 2, False, 3, id="those that start are not asked for less"),
        pytest.param(20000.0, 1, 0, True, 11, id="full batches need more"),
        pytest.param(100.0, 1, 0, True, 2, id="fewer suffice"),
    ],
)
def test_full_batches_alone_ask_for_few_replicas(
    rate_rps: float, ready: int, warming: int, settled: bool, replicas: int
) -> None:
    found = requested(rate_rps, ready, warming, full_batches_only=True, settled=settled)
    assert found == replicas


def test_batches_of_all_sizes_bound_nothing() -> None:
    assert requested(3000.0, 1) == 49


@pytest.mark.parametrize(
    ("claim", "sizes", "only"),
    [
        pytest.param(SILENT, (32.0, 31.9), True, id="full ones"),
        pytest.param(SILENT, (32.0, 12.0), False, id="a smaller one tells"),
        pytest.param(SILENT, (), False, id="none"),
        pytest.param(Claim(max_batch=1), (1.0,), False, id="without batching"),
        pytest.param(Claim(max_batch=32, cost=FULL), (32.0,), False, id="the servers tell"),
        pytest.param(None, (32.0,), False, id="the largest is not known"),
    ],
)
def test_full_batches_only_are_recognized(
    claim: Claim | None, sizes: tuple[float, ...], only: bool
) -> None:
    executed = [BatchStats("a", 100.0, size, 0.013) for size in sizes]
    assert CostLearner().observe(executed, 2.0).saw_full_batches_only(claim) is only
