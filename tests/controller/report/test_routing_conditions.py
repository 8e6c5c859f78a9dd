"""A service without a gateway has a reason and a next step for each cause."""

from __future__ import annotations

import pytest

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionStatus, ConditionType
from headroom.controller.act.write_result import WriteResult
from headroom.controller.gather.gateways.route_status import RouteStatus
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.report.conditions.condition_result import TickResult
from headroom.controller.report.conditions.condition_rules import of_tick
from headroom.scaling.values.observation import Observation
from support.fakes_decision import ONE_REPLICA_KEPT
from support.service_world import service

ROUTED = service(spec__routing={"mode": "Gateway"})


@pytest.mark.parametrize(
    ("route", "reason", "message"),
    [
        (
            RouteStatus(refused="the namespace has all of its 1000 ports"),
            StatusReason.NO_PORT_LEFT,
            (
                "because the namespace has all of its 1000 ports; delete services, or set "
                "routing.mode of some to Service"
            ),
        ),
        (
            RouteStatus(left_out="the namespace has all of its 16 MiB"),
            StatusReason.GATEWAY_CONFIGURATION_FULL,
            (
                "because the namespace has all of its 16 MiB; give services fewer routes, or mode "
                "Service"
            ),
        ),
        (RouteStatus(), StatusReason.NO_GATEWAY, "no gateway accepts connections"),
    ],
    ids=["ports", "configuration", "gateways are absent"],
)
def test_service_without_a_gateway_says_what_is_used_up(
    route: RouteStatus, reason: StatusReason, message: str
) -> None:
    tick = TickResult(
        service=ROUTED,
        gathered=Gathered(observation=Observation(now_s=0.0, current=1), deployment=None, pods=()),
        decision=ONE_REPLICA_KEPT,
        written=WriteResult(replicas=1),
        route=route,
    )
    (found,) = [one for one in of_tick(tick) if one.kind is ConditionType.ROUTING_READY]
    assert (found.status, found.reason) == (ConditionStatus.FALSE, reason)
    assert message in found.message
