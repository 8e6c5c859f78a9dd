"""A request that is marked as a retry counts as one only where another one has missed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from headroom.scaling.values.demand import DemandKnown
from headroom.scaling.values.observation import PodSample
from support.fakes_scaling import COST, Service


@dataclass
class ReportedService(Service):
    """A share of the requests is marked as retries, and a share is refused."""

    named: float = 0.0
    refused: float = 0.0

    def samples(self) -> tuple[PodSample, ...]:
        return tuple(
            replace(
                one,
                retried=self.named * one.arrivals,
                missed=self.refused * one.arrivals,
                latency=replace(
                    one.latency,
                    counts=tuple((1.0 - self.refused) * count for count in one.latency.counts),
                ),
            )
            for one in super().samples()
        )


@pytest.mark.parametrize("named", [0.5, 0.9, 1.0])
def test_client_that_names_all_its_requests_further_tries_takes_no_replicas_from_others(
    named: float,
) -> None:
    """With 90 % named so, five replicas were left of seven, and 300 requests waited for good."""
    honest = ReportedService(rate_rps=5 * COST.full_batch_rps)
    honest.run(600.0)
    service = ReportedService(rate_rps=5 * COST.full_batch_rps, named=named)
    service.run(600.0)
    assert service.replicas == honest.replicas
    assert sum(service.waiting.values()) == 0


@pytest.mark.parametrize(
    ("named", "refused", "demand"),
    [
        pytest.param(0.6, 0.7, 0.4, id="each follows a miss: all are subtracted"),
        pytest.param(0.6, 0.2, 0.8, id="more than have missed: those are demand"),
        pytest.param(0.6, 0.0, 1.0, id="none has missed"),
    ],
)
def test_as_many_are_subtracted_as_have_missed(named: float, refused: float, demand: float) -> None:
    service = ReportedService(rate_rps=40.0, replicas=8, named=named, refused=refused)
    decision = service.run(120.0)
    corrected = decision.demand.known is DemandKnown.INCLUDES_RETRIES
    assert corrected == (demand < 1.0)
    if corrected:
        assert decision.demand.rate_rps == pytest.approx(demand * 40.0, rel=0.02)
