"""A Prometheus is named once by who runs the operator, never by a resource."""

from __future__ import annotations

import pytest

from headroom.cli.options.prometheus import sources


def test_urls_of_one_name_are_replicas() -> None:
    given = ["default=http://a:9090", "default=http://b:9090/", "far=https://thanos.example/query"]
    assert sources(given) == {
        "default": ("http://a:9090", "http://b:9090/"),
        "far": ("https://thanos.example/query",),
    }
    assert sources([]) == {}


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("http://a:9090", "given as NAME=URL"),
        ("=http://a", "given as NAME=URL"),
        ("Main=http://a", "given as NAME=URL"),
        ("main=a:9090", "begins with http"),
        ("main=file:///etc/passwd", "begins with http"),
        ("main=http://", "begins with http"),
        ("main=http://user:secret@a", "without credentials"),
        ("main=http://a?x=1", "without credentials"),
    ],
)
def test_what_is_no_source_is_refused_without_repeating_a_secret(given: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule) as raised:
        sources([given])
    assert "secret" not in str(raised.value)
