"""Sources of pods' metrics, and the message about a pod without any. Through the ports."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headroom.api import InferenceService
from headroom.controller.gather.metrics.metrics_reader import Measured, MetricsReader, samples_of
from headroom.controller.gather.metrics.prometheus_answers import ANSWERS
from headroom.controller.gather.metrics.scrape_failure import OLD
from headroom.controller.gather.pods.pods import ObservedPod
from headroom.errors import ScrapeFailed
from headroom.scaling.values.observation import Pod, PodState
from headroom.telemetry.pages.exposition import Layout, Page, Series
from headroom.telemetry.prometheus_pages import ScrapedPage

PAGES = Path(__file__).parents[3] / "telemetry" / "pages"
MOSEC = (PAGES / "mosec_second.prom").read_text()


class Clock:
    def __init__(self) -> None:
        self.time_s = 1000.0

    def now_s(self) -> float:
        return self.time_s


class Scraper:
    def __init__(self, page: str = MOSEC) -> None:
        self.page = page
        self.asked: list[str] = []

    async def scrape(self, url: str, prefix: str, most_bytes: int) -> str:
        self.asked.append(url)
        return self.page


class Prometheus:
    """Gives what it was given, or fails."""

    def __init__(self, pages: Mapping[str, ScrapedPage] | ScrapeFailed) -> None:
        self._pages = pages
        self.asked: list[tuple[str, Sequence[str], float]] = []

    async def pages(
        self, metrics: frozenset[str], namespace: str, pods: Sequence[str], window_s: float
    ) -> Mapping[str, ScrapedPage]:
        self.asked.append((namespace, pods, window_s))
        if isinstance(self._pages, ScrapeFailed):
            raise self._pages
        return self._pages


def service(runtime: Mapping[str, Any], **spec: Any) -> InferenceService:
    return InferenceService.parse(
        {
            "metadata": {"name": "resnet", "namespace": "shop", "uid": "s"},
            "spec": {
                "runtime": {"image": "x", **runtime},
                "slo": {"latency": {"target": "1s"}},
                **spec,
            },
        }
    )


def pod(name: str, **changes: Any) -> ObservedPod:
    seen = Pod(uid=f"uid-{name}", state=PodState.READY, created_s=500.0)
    return ObservedPod(pod=seen, name=name, ip="10.0.0.1", **changes)


def scraped(in_flight: float, time_s: float) -> ScrapedPage:
    layout = Layout((Series("mosec_service_remaining_task", {}),), 1)
    return ScrapedPage(Page(layout, (in_flight,)), time_s)


def measure(measuring: MetricsReader, of: InferenceService, *pods: ObservedPod) -> Measured:
    return asyncio.run(measuring.measure(of, pods, samples_of(of, None)))


MOSEC_RUNTIME = {"profile": "mosec", "maxBatchSize": 8}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "own"}
FROM_PROMETHEUS = {"telemetry": {"source": "Prometheus"}}


@pytest.mark.parametrize(
    ("runtime", "url"),
    [
        ({}, "http://10.0.0.1:8000/metrics"),
        (MOSEC_RUNTIME, "http://10.0.0.1:8000/metrics"),
        (MOSEC_RUNTIME | {"port": 9000}, "http://10.0.0.1:9000/metrics"),
        ({"profile": "triton", "maxBatchSize": 8}, "http://10.0.0.1:8002/metrics"),
        ({"profile": "triton", "maxBatchSize": 8, "metricsPort": 7}, "http://10.0.0.1:7/metrics"),
        ({"profile": "sglang", "maxBatchSize": 8}, "http://10.0.0.1:30000/metrics"),
    ],
)
def test_pod_is_scraped_at_its_profiles_path(runtime: dict[str, Any], url: str) -> None:
    scraper = Scraper()
    measure(MetricsReader(scraper, Clock(), {}), service(runtime), pod("p"))
    assert scraper.asked == [url]


@pytest.mark.parametrize(
    ("spec", "runtime", "port"),
    [
        ({}, {"port": 9000}, 8000),
        ({}, {"port": 9000, "metricsPort": 7}, 7),
        ({"targetRef": TARGET}, {"port": 9000, "image": None}, 9000),
    ],
)
def test_pod_of_an_earlier_template_is_scraped_at_its_own_port(
    spec: dict[str, Any], runtime: dict[str, Any], port: int
) -> None:
    scraper = Scraper()
    edited = service(runtime, **spec)
    measure(MetricsReader(scraper, Clock(), {}), edited, pod("p", port=8000))
    assert scraper.asked == [f"http://10.0.0.1:{port}/metrics"]


def test_page_of_another_server_fails_with_the_remedy() -> None:
    found = measure(
        MetricsReader(Scraper(), Clock(), {}),
        service({"profile": "triton", "maxBatchSize": 8}),
        pod("p"),
    )
    assert found.samples == ()
    assert "the page is not from NVIDIA Triton" in found.unread[0].why


def test_prometheus_is_queried_once_with_scrape_times() -> None:
    source = Prometheus({"p": scraped(3.0, 990.0), "q": scraped(11.0, 1007.0)})
    found = measure(
        MetricsReader(Scraper(), Clock(), {"default": source}),
        service(MOSEC_RUNTIME, **FROM_PROMETHEUS),
        pod("p"),
        pod("q"),
    )
    assert source.asked == [("shop", ["p", "q"], 45.0)]
    # A Prometheus whose clock is ahead has scraped now, not later.
    assert [(one.time_s, one.waiting, one.running) for one in found.samples] == [
        (990.0, 0, 3),
        (1000.0, 3, 8),
    ]


def test_old_answer_of_prometheus_is_a_sample_and_is_named() -> None:
    of = service(MOSEC_RUNTIME, **FROM_PROMETHEUS)
    source = Prometheus({"p": scraped(3.0, 940.0)})
    found = measure(MetricsReader(Scraper(), Clock(), {"default": source}), of, pod("p"))
    assert [one.time_s for one in found.samples] == [940.0]
    assert [one.why for one in found.unread] == [OLD % "1970-01-01T00:15:40Z"]


def test_pages_of_an_answer_leave_the_loop_to_others() -> None:
    """400 pods whose labels are new at each scrape took 1.3 s at once."""
    names = [f"p{number}" for number in range(400)]
    pages = {}
    for name in names:
        extra = [Series("mosec_service_remaining_task", {"x": f"{name}-{n}"}) for n in range(200)]
        series = (Series("mosec_service_remaining_task", {}), *extra)
        pages[name] = ScrapedPage(Page(Layout(series, len(series)), (3.0,) * len(series)), 990.0)
    reader = MetricsReader(Scraper(), Clock(), {"default": Prometheus(pages)})
    of = service(MOSEC_RUNTIME, **FROM_PROMETHEUS)

    async def scenario() -> tuple[int, int]:
        measuring = asyncio.create_task(
            reader.measure(of, [pod(name) for name in names], samples_of(of, None))
        )
        turns = 0
        while not measuring.done():
            await asyncio.sleep(0)
            turns += 1
        return turns, len(measuring.result().samples) + len(measuring.result().unread)

    turns, read = asyncio.run(scenario())
    assert read == len(names)
    assert turns >= len(names)  # of another task, between two pages each


def test_prometheus_is_asked_for_few_services_at_a_time() -> None:
    """Their pages are in memory until all are parsed; of two namespaces both are read."""
    held: dict[str, int] = {"shop": 0, "other": 0}

    class Slow:
        async def pages(
            self, metrics: frozenset[str], namespace: str, pods: Sequence[str], window_s: float
        ) -> Mapping[str, ScrapedPage]:
            held[namespace] += 1
            await asyncio.Event().wait()
            raise AssertionError

    reader = MetricsReader(Scraper(), Clock(), {"default": Slow()})
    of = service(MOSEC_RUNTIME, **FROM_PROMETHEUS)
    other = replace(of, namespace="other")

    async def scenario() -> None:
        asking = [
            asyncio.create_task(reader.measure(one, [pod("p")], samples_of(one, None)))
            for one in [*[of] * 48, other]
        ]
        await asyncio.sleep(0.05)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    asyncio.run(scenario())
    assert held == {"shop": ANSWERS // 2, "other": 1}


def test_unchanged_page_is_the_same_sample() -> None:
    of = service(MOSEC_RUNTIME, **FROM_PROMETHEUS)
    samples = samples_of(of, None)
    source = Prometheus({"p": scraped(3.0, 990.0)})
    measuring = MetricsReader(Scraper(), Clock(), {"default": source})
    first = asyncio.run(measuring.measure(of, [pod("p")], samples))
    second = asyncio.run(measuring.measure(of, [pod("p")], samples))
    assert first.samples[0] is second.samples[0]


class Scraping:
    """Replicas of a Prometheus that answer in turn; each scrapes every 15 s, by a clock ahead."""

    def __init__(self, clock: Clock, ahead_s: float, replicas: int) -> None:
        self._clock = clock
        self.ahead_s = ahead_s
        self._replicas = replicas
        self._asked = 0
        self.dead_s = math.inf
        """Time when the pod stops answering."""

    async def pages(
        self, metrics: frozenset[str], namespace: str, pods: Sequence[str], window_s: float
    ) -> Mapping[str, ScrapedPage]:
        self._asked += 1
        late_s = 7.0 * (self._asked % self._replicas)
        now_s = min(self._clock.time_s, self.dead_s)
        scraped_s = (now_s - late_s) // 15.0 * 15.0 + late_s
        return {"p": scraped(scraped_s, scraped_s + self.ahead_s)}


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("ahead_s", [-5.0, 0.0, 1.0, 3.0, 10.0, 20.0, 3600.0])
def test_page_counts_once_however_far_the_clock_of_prometheus_is_ahead(
    ahead_s: float, replicas: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    of = service(MOSEC_RUNTIME, **FROM_PROMETHEUS)
    samples = samples_of(of, None)
    source = Scraping(clock, ahead_s, replicas)
    measuring = MetricsReader(Scraper(), clock, {"default": source})
    taken: list[tuple[int, float]] = []  # when it was scraped (the gauge), and what it is dated

    def measured() -> float:
        clock.time_s += 2.0
        (one,) = asyncio.run(measuring.measure(of, [pod("p")], samples)).samples
        taken.append((one.waiting + one.running, one.time_s))
        return clock.time_s - one.time_s

    for _ in range(150):
        assert 0.0 <= measured() <= 17.0 - min(ahead_s, 0.0)
    pages = len({scraped_s for scraped_s, _ in taken})
    assert pages >= 300 // 15
    assert len(set(taken)) == pages
    assert taken == sorted(taken)
    assert caplog.text.count("in the future") == (ahead_s > 5.0)
    source.dead_s = clock.time_s
    for _ in range(30):
        age_s = measured()
    assert age_s >= 60.0 - 2.0


def test_clock_of_prometheus_that_is_set_right_makes_no_gap() -> None:
    clock = Clock()
    of = service(MOSEC_RUNTIME, **FROM_PROMETHEUS)
    samples = samples_of(of, None)
    source = Scraping(clock, 3600.0, 1)
    measuring = MetricsReader(Scraper(), clock, {"default": source})
    for _ in range(40):
        clock.time_s += 2.0
        source.ahead_s = 3600.0 if clock.time_s < 1040.0 else 0.0
        (one,) = asyncio.run(measuring.measure(of, [pod("p")], samples)).samples
        assert 0.0 <= clock.time_s - one.time_s <= 17.0


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({}, "name no Prometheus 'default' (--prometheus; none)"),
        ({"main": Prometheus({})}, "name no Prometheus 'default' (--prometheus; main)"),
        ({"default": Prometheus({})}, "has no recent sample with this"),
        ({"default": Prometheus({"p": scraped(1.0, 499.0)})}, "has no recent sample with this"),
        ({"default": Prometheus(ScrapeFailed("it hangs"))}, "it hangs"),
        ({"default": Prometheus({"p": scraped(float("nan"), 990.0)})}, "must be finite"),
    ],
)
def test_missing_prometheus_sample_fails_and_is_not_zero(
    source: dict[str, Prometheus], words: str
) -> None:
    found = measure(
        MetricsReader(Scraper(), Clock(), source),
        service(MOSEC_RUNTIME, **FROM_PROMETHEUS),
        pod("p"),
    )
    assert found.samples == ()
    assert words in found.unread[0].why


def test_custom_profile_reads_metrics_by_spec() -> None:
    count = {"name": "bentoml_service_request_total"}
    latency = {"name": "bentoml_service_request_duration_seconds"}
    endpoint = {"label": "endpoint", "values": ["/predict"]}
    metrics = {
        "inFlight": {"name": "bentoml_service_request_in_progress", "labels": [endpoint]},
        "latency": latency
        | {"labels": [endpoint, {"label": "http_response_code", "values": ["200"]}]},
        "missed": count
        | {"labels": [endpoint, {"label": "http_response_code", "values": ["500", "503"]}]},
        "runningTime": {
            "name": "bentoml_service_request_duration_seconds_sum",
            "labels": [endpoint],
        },
        "retried": {"name": "further_tries_total"},
    }
    of = service({"profile": "custom", "maxBatchSize": 8, "port": 3000, "metrics": metrics})
    page = (PAGES / "bentoml_second.prom").read_text() + "further_tries_total 21\n"
    scraper = Scraper(page)
    found = measure(MetricsReader(scraper, Clock(), {}), of, pod("p"))
    assert scraper.asked == ["http://10.0.0.1:3000/metrics"]
    (sample,) = found.samples
    # 1497 answered, 16 in flight; the readiness probe and the malformed request are no load.
    assert (sample.arrivals, sample.missed, sample.waiting, sample.running) == (1513, 0, 8, 8)
    assert sample.retried == 21


VLLM = (PAGES / "vllm_kvfull.prom").read_text()


def test_limits_that_no_page_says_are_those_of_each_pods_arguments() -> None:
    """During a rollout an engine of the earlier template runs with one of the new."""
    of = service({"profile": "vllm", "maxBatchSize": 16})
    pods = [
        pod("old"),
        pod("new", arguments=("vllm", "serve", "m", "--max-num-batched-tokens=512")),
    ]
    clock, samples = Clock(), samples_of(of, None)
    measuring = MetricsReader(Scraper(VLLM), clock, {})
    asyncio.run(measuring.measure(of, pods, samples))
    clock.time_s += 2.0
    read = asyncio.run(measuring.measure(of, pods, samples)).samples
    limits = [one.generation.limits for one in read if one.generation is not None]
    assert [one.iteration_tokens for one in limits] == [None, 512]
    assert [one.sequences for one in limits] == [16, 16]


def test_samples_restart_when_the_spec_reads_another_profile() -> None:
    of = service(MOSEC_RUNTIME)
    known = samples_of(of, None)
    assert samples_of(of, known) is known
    assert samples_of(service(MOSEC_RUNTIME | {"maxBatchSize": 4}), known) is not known
    assert samples_of(service({}), known) is not known
