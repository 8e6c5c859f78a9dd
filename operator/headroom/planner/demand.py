"""The input of a plan: cost, SLO target, utilization ceiling; validated on construction."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.planner.ceiling import check_ceiling, check_headroom
from headroom.planner.errors import positive, require, share
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Routing


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The cost of a replica and the SLO, independent of the load."""

    cost: CostModel
    target_s: float | None = None
    """None: no latency target, sized by utilization alone."""
    percentile: float = 0.95
    ceiling: float = 0.8
    headroom: float = 0.0
    """Additional share of the arrivals to plan for."""
    routing: Routing = Routing.RANDOM
    gpus_per_replica: int = 1

    def __post_init__(self) -> None:
        """Raise ImpossiblePlan for invalid values, or a target below that of a single request."""
        check_cost(self.cost)
        share("the percentile", self.percentile, "Give one such as 0.95")
        check_ceiling(self.ceiling)
        check_headroom(self.headroom)
        require(
            self.gpus_per_replica >= 1,
            "GPUs per replica must be at least 1",
            self.gpus_per_replica,
            "Give the GPUs of one pod",
        )
        if self.target_s is not None:
            positive(
                "the latency target", self.target_s, "Give the latency that a request may have"
            )
            floor_s = self.tail(self.percentile).idle_s
            require(
                self.target_s >= floor_s,
                f"the latency target must be at least {1000 * floor_s:.4g} ms "
                f"({self._of_single_requests()})",
                f"{1000 * self.target_s:.4g} ms",
                "Increase the target or use a faster model; more replicas cannot help",
            )

    def _of_single_requests(self) -> str:
        if not self.cost.cv:
            return "the time of a single request"
        quantile = f"p{100 * self.percentile:g}"
        return f"{quantile} of single requests, whose times vary by cv {self.cost.cv:g}"

    def tail(self, percentile: float) -> TailLatency:
        """Return the model of a percentile of this service's latency."""
        return TailLatency(cost=self.cost, percentile=percentile, routing=self.routing)


def check_cost(cost: CostModel) -> None:
    """Raise ImpossiblePlan for an invalid cost."""
    for name, value in (
        ("the batch overhead", cost.fixed_s),
        ("the time per item", cost.per_item_s),
    ):
        require(value >= 0, f"{name} must be at least 0", f"{value:g} s", "Give a time such as 6ms")
    positive(
        "the time of a single request",
        cost.batch_s(1),
        "Give a batch overhead, a time per item or both",
    )
    require(
        1 <= cost.max_batch <= 1024,
        "the maximum batch size must be between 1 and 1024",
        cost.max_batch,
        "1 is a server without batching",
    )
    require(
        1 <= cost.slots <= 4096,
        "slots must be between 1 and 4096",
        cost.slots,
        "Give the concurrent executions of one replica",
    )
    require(
        0 <= cost.cv <= 10,
        "the coefficient of variation must be between 0 and 10",
        f"{cost.cv:g}",
        "0 is constant, 1 is exponential",
    )
