"""Readings and settings of the measurement of a thousand services."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.api import InferenceService
from headroom.profiles.headroom import HEADROOM
from headroom.telemetry.samples.pod_samples import PodSamples
from reliability.scale_1000 import accounts, addresses, seeding, sizes
from reliability.scale_1000.fake_pods import PodPages
from reliability.scale_1000.sizes import Size

BEFORE = """headroom_operator_ticks_total{outcome="ok"} 10.0
headroom_operator_tick_lag_seconds_bucket{le="0.1"} 10.0
headroom_operator_tick_lag_seconds_bucket{le="1.0"} 10.0
headroom_operator_tick_lag_seconds_bucket{le="+Inf"} 10.0
headroom_operator_api_requests_total{code="200",verb="get"} 5.0
"""
AFTER = """headroom_operator_ticks_total{outcome="ok"} 105.0
headroom_operator_ticks_total{outcome="Conflict"} 5.0
headroom_operator_tick_lag_seconds_bucket{le="0.1"} 105.0
headroom_operator_tick_lag_seconds_bucket{le="1.0"} 109.0
headroom_operator_tick_lag_seconds_bucket{le="+Inf"} 110.0
headroom_operator_api_requests_total{code="200",verb="get"} 55.0
headroom_operator_api_requests_total{code="503",verb="get"} 1.0
"""


def test_account_counts_what_happened_between_two_pages() -> None:
    account = accounts.Account(
        services=10,
        seconds=50.0,
        cpu_s=0.5,
        rss_mb=100.0,
        before=accounts.read(BEFORE),
        after=accounts.read(AFTER),
    )
    assert account.ticks == 100
    assert account.failed == 5
    assert account.calls == {"get": 51.0}
    assert account.late_s(0.95) == 0.1
    assert account.late_s(0.99) == 1.0


def size(services: int, **changes: Any) -> Size:
    """A size that keeps every promise."""
    usual: dict[str, Any] = {
        "services": services,
        "pods": 7000 + 3 * services,
        "seconds": 60.0,
        "cpu_s": 24.0,
        "rss_mb": 200.0,
        "ticks": 4000.0,
        "failed": 0.0,
        "late_s": 0.1,
        "writes": 10,
        "calls": {"get": 60.0, "list": 120.0},
        "warm_s": 90.0,
        "first_s": 15.0,
        "first_cpu_s": 9.0,
        "first_rss_mb": 190.0,
        "load": 1.0,
    }
    return Size(**usual | changes)


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, []),
        ({"cpu_s": 30.1}, ["share of a core"]),
        ({"rss_mb": 251.0}, ["resident memory"]),
        ({"late_s": 2.5}, ["start delay, p99"]),
        ({"writes": 242}, []),  # 240 by turns of 250 s, and 2
        ({"writes": 243}, ["status writes a minute"]),
        ({"first_s": 20.1}, ["from start to the last service's first decision"]),
        ({"first_rss_mb": 300.0}, ["peak memory until then"]),
    ],
)
def test_every_bound_at_1000_services_can_fail(changes: dict[str, Any], broken: list[str]) -> None:
    found = sizes.figures(size(1000, **changes))
    assert [one.name.rpartition(": ")[2] for one in found if one.holds is False] == broken
    assert sum(one.holds is not None for one in found) == 6


def test_more_than_1000_services_have_no_bound() -> None:
    found = sizes.figures(size(5000, rss_mb=900.0, first_s=99.0))
    assert [one.holds for one in found] == [None] * len(found)
    assert "list 2.0/s, get 1.0/s" in [one.measured for one in found]


def test_a_tick_costs_the_same_with_few_services() -> None:
    few = size(10, cpu_s=3.0, ticks=300.0)  # 10 ms
    assert sizes.flat(few, size(1000, ticks=1920.0)).holds is True  # 12.5 ms
    assert sizes.flat(few, size(1000, ticks=1900.0)).holds is False
    assert sizes.flat(few, size(5000, ticks=1.0)).holds is None


def test_stored_size_reads_back_unchanged() -> None:
    one = size(1000)
    assert Size.of(json.loads(json.dumps(one.row()))) == one


def test_warm_replicas_are_those_that_the_operator_counts() -> None:
    page = """headroom_service_replicas{inferenceservice="a",namespace="n",state="desired"} 3.0
headroom_service_replicas{inferenceservice="a",namespace="n",state="ready"} 2.0
headroom_service_replicas{inferenceservice="b",namespace="n",state="ready"} 3.0
"""
    assert accounts.ready(page) == {
        'inferenceservice="a",namespace="n"': 2.0,
        'inferenceservice="b",namespace="n"': 3.0,
    }


@settings(max_examples=100)
@given(st.integers(0, addresses.MOST_SERVICES - 1), st.integers(0, addresses.PODS_OF_A_SERVICE - 1))
def test_an_address_leads_back_to_its_service(service: int, pod: int) -> None:
    address = addresses.address_of(service, pod)
    assert addresses.service_at(address) == service
    assert address.startswith("127.")
    assert not address.startswith("127.0.")


def test_fake_pods_answer_as_the_model_server_and_services_are_valid() -> None:
    number = 999
    raw = seeding.manifest(number, port=8000, pods=3)
    raw["metadata"] |= {"uid": "u", "generation": 1}
    service = InferenceService.parse(raw)
    page = PodPages().page(addresses.address_of(number, 2)).decode()
    samples = PodSamples(HEADROOM, service.model_name)
    assert samples.take(page, pod="p", time_s=1.0) is not None
