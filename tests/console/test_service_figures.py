"""Figures of services as Prometheus text, read by the parser of prometheus_client."""

from __future__ import annotations

import math

from prometheus_client.parser import text_string_to_metric_families

from headroom.ops.service_gauges import Family, ServiceGauges

FAMILIES = {
    "minutes_total": Family(text="Minutes.", label="met", kind="counter"),
    "latency_seconds": Family(text="The percentile."),
    "replicas": Family(text="Replicas.", label="state"),
}
BERT, T5 = ("vision", "bert"), ("text", "t5")


def read(figures: ServiceGauges) -> dict[str, dict[tuple[str, ...], float]]:
    """Give the samples of each family by the values of their labels, in the order of the names."""
    return {
        family.name: {
            tuple(value for _, value in sorted(one.labels.items())): one.value
            for one in family.samples
        }
        for family in text_string_to_metric_families(figures.page().decode())
    }


def test_gauges_are_cleared_and_counters_stay() -> None:
    figures = ServiceGauges(FAMILIES)
    figures.show(BERT, "replicas", 3, "ready")
    figures.show(T5, "replicas", 2, "ready")
    figures.count(BERT, "minutes_total", 5, "true")
    figures.clear_gauges(BERT)
    figures.clear_gauges(("missing", "none"))
    found = read(figures)
    assert found["replicas"] == {("t5", "text", "ready"): 2}
    assert sum(found["minutes"].values()) == 5


def test_figure_shown_twice_keeps_the_last_value_and_none_removes_it() -> None:
    figures = ServiceGauges(FAMILIES)
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


def test_forget_removes_all_figures_of_the_service() -> None:
    figures = ServiceGauges(FAMILIES)
    for owner in (BERT, T5):
        figures.count(owner, "minutes_total", 0.0, "false")
        for _ in range(2):
            figures.count(owner, "minutes_total", 1.0, "true")
    figures.forget(T5)
    figures.forget(T5)
    assert read(figures)["minutes"] == {
        ("bert", "false", "vision"): 0.0,
        ("bert", "true", "vision"): 2.0,
    }


def test_page_renders_numbers_exactly_and_heads_each_family() -> None:
    figures = ServiceGauges(FAMILIES)
    for name, value in (("a", 1e-9), ("b", 1 / 3), ("c", -math.inf), ("d", 1.7e18)):
        figures.show(("n", name), "latency_seconds", value)
    figures.show(("n", "e"), "latency_seconds", math.nan)
    values = read(figures)["latency_seconds"]
    assert math.isnan(values.pop(("e", "n")))
    assert list(values.values()) == [1e-9, 1 / 3, -math.inf, 1.7e18]
    lines = figures.page().decode().splitlines()
    assert lines[:2] == ["# HELP minutes_total Minutes.", "# TYPE minutes_total counter"]
    assert lines[-2:] == ["# HELP replicas Replicas.", "# TYPE replicas gauge"]
