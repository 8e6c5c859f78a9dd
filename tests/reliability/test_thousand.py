"""What the measurement of a thousand services reads and sends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.api import InferenceService
from headroom.profiles.headroom import HEADROOM
from headroom.telemetry.pod_samples import PodSamples
from reliability.thousand import accounts, addresses, seeding
from reliability.thousand.farm import Farm

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


def test_an_account_says_what_came_between_two_pages() -> None:
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
    assert account.cores == pytest.approx(0.01)
    assert account.cpu_per_tick_ms == pytest.approx(5.0)
    assert account.calls == {"get": 51.0}
    assert account.late_s(0.95) == 0.1
    assert account.late_s(0.99) == 1.0


@settings(max_examples=100, deadline=None)
@given(st.integers(0, addresses.MOST_SERVICES - 1), st.integers(0, addresses.PODS_OF_A_SERVICE - 1))
def test_an_address_leads_back_to_its_service(service: int, pod: int) -> None:
    address = addresses.address_of(service, pod)
    assert addresses.service_at(address) == service
    assert address.startswith("127.")
    assert not address.startswith("127.0.")


def test_the_farm_answers_as_our_server_does_and_services_are_valid() -> None:
    number = 999
    raw = seeding.manifest(number, port=8000, pods=3)
    raw["metadata"] |= {"uid": "u", "generation": 1}
    service = InferenceService.parse(raw)
    page = Farm().page(addresses.address_of(number, 2)).decode()
    samples = PodSamples(HEADROOM, service.model_name)
    assert samples.take(page, pod="p", time_s=1.0) is not None
