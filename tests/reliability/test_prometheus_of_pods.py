"""The exporter as a Prometheus, read by the operator's own source."""

from __future__ import annotations

import asyncio

import pytest

from headroom.adapters.prometheus.prometheus_source import PrometheusSource
from headroom.errors import ScrapeFailed
from reliability.testbed.exporter import PROMETHEUS, Exporter, PodFault

pytestmark = pytest.mark.clock

METRICS = frozenset({"headroom_requests_received_total", "headroom_requests_waiting"})


async def test_pods_are_listed_by_namespace_and_a_partial_answer_is_rejected() -> None:
    async with Exporter() as exporter:
        exporter.begin("127.0.0.8", ("other", "resnet"), "elsewhere")
        exporter.begin("127.0.0.9", ("here", "resnet"), "pod-a")
        exporter.load(("here", "resnet"), 1000.0)
        await asyncio.sleep(0.05)
        source = PrometheusSource("default", [f"http://127.0.0.1:{exporter.port}"])
        async with source:
            pages = await source.pages(METRICS, "here", ["pod-a"], 45.0)
            assert set(pages) == {"pod-a"}
            exporter.faults["here", PROMETHEUS] = PodFault.PARTIAL
            with pytest.raises(ScrapeFailed):
                await source.pages(METRICS, "here", ["pod-a"], 45.0)
