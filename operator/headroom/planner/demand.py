"""What is asked of a plan: arrivals, cost, promise, ceiling; checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.planner.ceiling import check_ceiling, check_headroom
from headroom.planner.errors import positive, require, share
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values import CostModel, Routing


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a replica costs and promises, whatever arrives."""

    cost: CostModel
    target_s: float | None = None
    """None: no latency is promised, and utilization alone sizes."""
    percentile: float = 0.95
    ceiling: float = 0.8
    headroom: float = 0.0
    """Share of the arrivals to be ready for on top."""
    routing: Routing = Routing.RANDOM
    gpus_per_replica: int = 1

    def __post_init__(self) -> None:
        """Raise ImpossiblePlan for a promise that one request alone would break."""
        check_cost(self.cost)
        share("the percentile", self.percentile, "give one such as 0.95")
        check_ceiling(self.ceiling)
        check_headroom(self.headroom)
        require(
            self.gpus_per_replica >= 1,
            "a replica has at least 1 GPU",
            self.gpus_per_replica,
            "give the GPUs of one pod",
        )
        if self.target_s is not None:
            positive("the latency target", self.target_s, "give what a request may take")
            floor_s = self.tail(self.percentile).idle_s
            require(
                self.target_s >= floor_s,
                f"the latency target is at least what one request costs, {1000 * floor_s:.4g} ms",
                f"{1000 * self.target_s:.4g} ms",
                "promise more time, or make the model faster: replicas do not shorten a request",
            )

    def tail(self, percentile: float) -> TailLatency:
        """Return the model of a percentile of this service's latency."""
        return TailLatency(cost=self.cost, percentile=percentile, routing=self.routing)


def check_cost(cost: CostModel) -> None:
    """Raise ImpossiblePlan for a replica that cannot be."""
    for name, value in (("the fixed cost", cost.fixed_s), ("the cost per item", cost.per_item_s)):
        require(value >= 0, f"{name} is at least 0", f"{value:g} s", "give a time such as 6ms")
    positive("the cost of one request", cost.batch_s(1), "give --fixed, --per-item or both")
    require(
        1 <= cost.max_batch <= 1024,
        "the largest batch lies in 1..1024",
        cost.max_batch,
        "1 is a server without batching",
    )
    require(
        1 <= cost.slots <= 4096,
        "slots lie in 1..4096",
        cost.slots,
        "give executions side by side in one replica",
    )
    require(
        0 <= cost.cv <= 10,
        "the coefficient of variation lies in 0..10",
        f"{cost.cv:g}",
        "0 is constant, 1 is as variable as an exponential distribution",
    )
