"""The address of a Prometheus is an option of the operator, never part of a resource."""

from __future__ import annotations

import pytest

from headroom.cli.run_options.prometheus import prometheus_sources


def test_prometheus_urls_of_one_name_are_replicas() -> None:
    given = ["default=http://a:9090", "default=http://b:9090/", "far=https://thanos.example/query"]
    assert prometheus_sources(given) == {
        "default": ("http://a:9090", "http://b:9090/"),
        "far": ("https://thanos.example/query",),
    }
    assert prometheus_sources([]) == {}


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("http://a:9090", "must be NAME=URL"),
        ("=http://a", "must be NAME=URL"),
        ("Main=http://a", "must be NAME=URL"),
        ("main=a:9090", "must begin with http"),
        ("main=file:///etc/passwd", "must begin with http"),
        ("main=http://", "must begin with http"),
        ("main=http://user:secret@a", "no credentials"),
        ("main=http://a?x=1", "no credentials"),
    ],
)
def test_invalid_prometheus_source_fails_without_repeating_secrets(given: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule) as raised:
        prometheus_sources([given])
    assert "secret" not in str(raised.value)
