"""Counters of a server against the counts of its clients."""

from __future__ import annotations

import pytest

from serverbench.experiments.exposition import disagreements, grown, series, total
from serverbench.generator.exchange import Status

BEFORE = series('headroom_requests_total{model="m",outcome="ok"} 5\n')
TEXT = """
# TYPE headroom_requests_received_total counter
headroom_requests_received_total{model="m"} 115
# TYPE headroom_requests_total counter
headroom_requests_total{model="m",outcome="ok"} 100
headroom_requests_total{model="m",outcome="refused"} 7
headroom_requests_total{model="m",outcome="expired"} 1
headroom_requests_total{model="m",outcome="cancelled"} 4
headroom_requests_total{model="m",outcome="failed"} 0
# TYPE headroom_requests_invalid_total counter
headroom_requests_invalid_total{model="m",reason="not_json"} 2
headroom_requests_invalid_total{model="m",reason="too_large"} 3
# TYPE headroom_requests_waiting gauge
headroom_requests_waiting{model="m"} 0
# TYPE headroom_requests_running gauge
headroom_requests_running{model="m"} 3
# TYPE headroom_batch_size histogram
headroom_batch_size_bucket{model="m",le="1"} 9
headroom_batch_size_bucket{model="m",le="+Inf"} 12
headroom_batch_size_sum{model="m"} 40
headroom_batch_size_count{model="m"} 12
"""


def test_samples_are_read_by_name_and_their_one_label() -> None:
    found = series(TEXT)
    assert found["requests_total", "refused"] == 7
    assert found["requests_received_total", ""] == 115
    assert found["batch_size_count", ""] == 12
    assert total(found, "requests_invalid_total") == 5
    assert total(found, "never_heard_of") == 0
    assert not any(name.endswith("_bucket") for name, _ in found)


def test_growth_is_the_difference_of_two_pages() -> None:
    assert grown(series(TEXT), BEFORE)["requests_total", "ok"] == 95


def test_equal_counters_have_no_difference() -> None:
    seen = {200: 99, 429: 5, 503: 2, 504: 1, 400: 2, 413: 3, Status.ABANDONED: 5}
    off = dict(disagreements(series(TEXT), seen))
    # three still run: they are received, and have no outcome; of five that left one was answered
    assert off.pop("arrived compared with outcomes") == 3
    assert off.pop("in flight") == 3
    assert set(off.values()) == {0}


@pytest.mark.parametrize(
    ("status", "what"),
    [(200, "left"), (429, "refused"), (504, "expired"), (500, "failed"), (413, "invalid")],
)
def test_one_more_at_the_client_is_noticed(status: int, what: str) -> None:
    seen = {200: 99, 429: 5, 503: 2, 504: 1, 400: 2, 413: 3, Status.ABANDONED: 5}
    seen[status] = seen.get(status, 0) + 1
    assert disagreements(series(TEXT), seen)[what] == -1
