"""Figures of services as Prometheus text: what a parser that is not ours reads in it."""

from __future__ import annotations

import math

from prometheus_client.parser import text_string_to_metric_families

from headroom.ops.service_gauges import Family, ServiceFigures

FAMILIES = {
    "minutes_total": Family(text="Minutes.", label="kept", kind="counter"),
    "latency_seconds": Family(text="The percentile."),
    "replicas": Family(text="Replicas.", label="state"),
}
BERT, T5 = ("vision", "bert"), ("text", "t5")


def read(figures: ServiceFigures) -> dict[str, dict[tuple[str, ...], float]]:
    """Give the samples of each family by the values of their labels, in the order of the names."""
    return {
        family.name: {
            tuple(value for _, value in sorted(one.labels.items())): one.value
            for one in family.samples
        }
        for family in text_string_to_metric_families(figures.page().decode())
    }


def test_what_is_shown_last_is_read_and_what_is_none_is_not_there() -> None:
    figures = ServiceFigures(FAMILIES)
    figures.show(BERT, "latency_seconds", 0.1)
    figures.show(BERT, "latency_seconds", math.inf)
    figures.show(T5, "latency_seconds", 0.25)
    figures.show(T5, "latency_seconds", None)
    figures.show(T5, "latency_seconds", None)
    figures.show(BERT, "replicas", 3, "ready")
    figures.show(BERT, "replicas", 1, "late")
    assert read(figures) == {
        "minutes": {},
        "latency_seconds": {("bert", "vision"): math.inf},
        "replicas": {("bert", "vision", "ready"): 3.0, ("bert", "vision", "late"): 1.0},
    }


def test_a_count_begins_at_zero_and_a_service_that_is_gone_takes_its_figures_along() -> None:
    figures = ServiceFigures(FAMILIES)
    for owner in (BERT, T5):
        figures.count(owner, "minutes_total", 0.0, "false")
        for _ in range(2):
            figures.count(owner, "minutes_total", 1.0, "true")
    figures.forget(T5)
    figures.forget(T5)
    assert read(figures)["minutes"] == {
        ("false", "bert", "vision"): 0.0,
        ("true", "bert", "vision"): 2.0,
    }


def test_numbers_are_written_as_they_were_and_families_say_what_they_are() -> None:
    figures = ServiceFigures(FAMILIES)
    for name, value in (("a", 1e-9), ("b", 1 / 3), ("c", -math.inf), ("d", 1.7e18)):
        figures.show(("n", name), "latency_seconds", value)
    figures.show(("n", "e"), "latency_seconds", math.nan)
    values = read(figures)["latency_seconds"]
    assert math.isnan(values.pop(("e", "n")))
    assert list(values.values()) == [1e-9, 1 / 3, -math.inf, 1.7e18]
    lines = figures.page().decode().splitlines()
    assert lines[:2] == ["# HELP minutes_total Minutes.", "# TYPE minutes_total counter"]
    assert lines[-2:] == ["# HELP replicas Replicas.", "# TYPE replicas gauge"]
