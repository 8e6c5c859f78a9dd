"""Pages of several gateways become one series, in which nothing that is missing is zero."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.controller.gather.gateways.gateway_counters import GatewayCounters, ServiceTotals
from headroom.gateway.listener.access_counts import Bin, ServiceCounters

KEY = "vision/resnet50"
FAST, SLOW = Bin(1000, 1100), Bin(15000, 16000)


def counted(ended: int, active: int = 0, **more: int) -> ServiceCounters:
    arrived, answered = ended + active, {FAST: ended}
    return ServiceCounters(arrived=arrived, ended=ended, active=active, answered=answered, **more)


def tally(counters: GatewayCounters) -> ServiceTotals:
    found = counters.of(KEY)
    assert found is not None
    return found


@pytest.fixture
def counters() -> GatewayCounters:
    """Two gateways that were there before, each scraped once at 100 s."""
    counters = GatewayCounters()
    counters.set_gateways(["a", "b"], 99.0)
    for gateway, before in (("a", 1000), ("b", 7)):
        counters.add_page(gateway, {KEY: counted(before)}, 100.0)
    return counters


def test_totals_without_a_gateway_are_none() -> None:
    assert GatewayCounters().of(KEY) is None


def test_totals_leave_out_the_baseline_and_add_gateways(
    counters: GatewayCounters,
) -> None:
    assert tally(counters) == ServiceTotals(time_s=100.0, complete=True)
    counters.add_page("a", {KEY: counted(1030, active=2, missed=4, rejected=1)}, 102.0)
    counters.add_page("b", {KEY: replace(counted(8, active=1), answered={FAST: 7, SLOW: 1})}, 103.0)
    found = tally(counters)
    assert found.time_s == 102.0
    assert found.counted == ServiceCounters(
        arrived=34, ended=31, active=3, missed=4, rejected=1, answered={FAST: 30, SLOW: 1}
    )


def test_failed_gateway_holds_the_time_and_names_the_error(counters: GatewayCounters) -> None:
    counters.add_page("a", {KEY: counted(1030)}, 102.0)
    counters.mark_failed("b", "no page within 1 s")
    assert (tally(counters).time_s, tally(counters).failed) == (100.0, ("b: no page within 1 s",))
    counters.add_page("b", {KEY: counted(7)}, 104.0)
    assert (tally(counters).time_s, tally(counters).failed) == (102.0, ())


def test_removed_gateway_keeps_its_counts(counters: GatewayCounters) -> None:
    counters.add_page("a", {KEY: counted(1030)}, 102.0)
    counters.set_gateways(["b"], 103.0)
    assert (tally(counters).counted.arrived, tally(counters).time_s) == (30, 100.0)
    counters.add_page("a", {KEY: counted(2000)}, 104.0)
    assert tally(counters).counted.arrived == 30


def test_new_gateway_is_incomplete_until_read(counters: GatewayCounters) -> None:
    counters.set_gateways(["a", "b", "c"], 105.0)
    assert (tally(counters).complete, tally(counters).time_s) == (False, 100.0)
    counters.add_page("c", {}, 106.0)
    assert tally(counters).complete
    counters.add_page("c", {KEY: counted(5)}, 108.0)  # its first requests: all of them came since
    assert tally(counters).counted.arrived == 5


def test_fallen_counter_is_a_restart(counters: GatewayCounters) -> None:
    counters.add_page("a", {KEY: counted(1030)}, 102.0)
    counters.add_page("a", {KEY: counted(6)}, 104.0)
    assert tally(counters).counted.arrived == 36
    assert tally(counters).counted.answered == {FAST: 36}


def test_request_counts_once_when_it_arrives(counters: GatewayCounters) -> None:
    for ended, active, arrived in [
        (1000, 40, 40),
        (1010, 30, 40),
        (1010, 25, 40),  # five are no longer in flight, and not counted as ended yet
        (1015, 28, 43),
    ]:
        counters.add_page("a", {KEY: counted(ended, active)}, 102.0)
        assert tally(counters).counted.arrived == arrived
    assert tally(counters).counted.ended == 15


def test_requests_in_flight_of_a_gateway_that_restarts_or_goes_stay_counted(
    counters: GatewayCounters,
) -> None:
    counters.add_page("a", {KEY: counted(1000, active=40)}, 102.0)
    counters.add_page("a", {KEY: counted(0, active=3)}, 104.0)
    assert tally(counters).counted.arrived == 43
    counters.set_gateways(["b"], 105.0)
    assert tally(counters).counted.arrived == 43
    counters.set_gateways(["a", "b"], 106.0)  # it is read again: what it has in flight is not new
    counters.add_page("a", {KEY: counted(0, active=3)}, 107.0)
    assert tally(counters).counted.arrived == 43


def test_service_on_no_gateway_is_discarded(counters: GatewayCounters) -> None:
    counters.add_page("a", {KEY: counted(1030)}, 102.0)
    for gateway in ("a", "b"):
        counters.add_page(gateway, {}, 104.0)
    assert tally(counters).counted.arrived == 0
