"""A real Prometheus as the source: its data, silence and restart, and two that scrape alike."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cluster.layout import Cache
from cluster.progress import OnConsole
from cluster.tools import prometheus
from free_ports import free_port
from headroom.adapters.prometheus.prometheus_source import PrometheusSource
from headroom.errors import ScrapeFailed
from headroom.profiles import PROFILES
from headroom.telemetry.prometheus_pages import ScrapedPage
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples

pytestmark = pytest.mark.clock

PROFILE = PROFILES["mosec"]
WINDOW_S = 3.0
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def program() -> Path:
    """Prometheus of Debian's package."""
    cache = Cache.of_this_user()
    prometheus.ensure(cache, OnConsole())
    return prometheus.program(cache, "prometheus")


class Exporter:
    """A model server's page for each pod, at its own path; a pod without a page answers 503."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = outer.pages.get(self.path.strip("/"))
                self.send_response(200 if page is not None else 503)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write((page or "").encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def served(self, pod: str, answered: int, in_flight: int = 0) -> None:
        self.pages[pod] = (
            f'mosec_service_throughput_total{{code="200",endpoint="/x"}} {answered}\n'
            f"mosec_service_remaining_task {in_flight}\n"
        )

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class RealPrometheus:
    """A process that scrapes the exporter twice a second."""

    def __init__(self, program: Path, folder: Path, exporter: str) -> None:
        self._program, self._folder = program, folder
        folder.mkdir()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        jobs = "".join(
            f"  - job_name: {pod}\n    metrics_path: /{pod}\n    static_configs:\n"
            f"      - targets: ['{exporter}']\n        labels: {{namespace: shop, pod: {pod}}}\n"
            for pod in ("p", "q")
        )
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 500ms, scrape_timeout: 400ms}\nscrape_configs:\n" + jobs
        )

    def start(self) -> None:
        command = [
            str(self._program),
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def running(
    program: Path, folder: Path, count: int
) -> Iterator[tuple[Exporter, list[RealPrometheus]]]:
    exporter = Exporter()
    replicas = [
        RealPrometheus(program, folder / f"prometheus-{number}", exporter.address)
        for number in range(count)
    ]
    try:
        for one in replicas:
            one.start()
        yield exporter, replicas
    finally:
        for one in replicas:
            one.kill()
        exporter.close()


async def pages(source: PrometheusSource) -> Mapping[str, ScrapedPage]:
    return await source.pages(PROFILE.metric_names, "shop", ["p", "q"], WINDOW_S)


async def until(
    source: PrometheusSource, holds: Callable[[Mapping[str, ScrapedPage]], bool]
) -> Mapping[str, ScrapedPage]:
    """Query until the condition holds; a Prometheus that starts or has gone does not answer."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        found: Mapping[str, ScrapedPage] = {}
        try:
            found = await pages(source)
        except ScrapeFailed as error:
            last: object = error
        else:
            last = found
            if holds(found):
                return found
        assert time.monotonic() < end_s, f"in {PATIENCE_S:.0f} s not what is waited for: {last}"
        await asyncio.sleep(0.2)


def arrivals(found: Mapping[str, ScrapedPage], pod: str) -> float | None:
    if pod not in found:
        return None
    sample = PodSamples(PROFILE, None, Batch(largest=8)).take(
        found[pod].page, pod=pod, time_s=found[pod].time_s
    )
    return None if sample is None else sample.arrivals


def _shows(pod: str, count: int) -> Callable[[Mapping[str, ScrapedPage]], bool]:
    return lambda found: arrivals(found, pod) == count


def test_samples_keep_their_own_times_and_deleted_pods_are_absent(
    program: Path, tmp_path: Path
) -> None:
    async def scenario() -> None:
        with running(program, tmp_path, 1) as (exporter, (one,)):
            exporter.served("p", 10, in_flight=3)
            exporter.served("q", 20)
            async with PrometheusSource("main", [one.url]) as source:
                await until(source, lambda found: len(found) == 2)
                asked_s, found = time.time(), await pages(source)
                assert arrivals(found, "p") == 13
                assert arrivals(found, "q") == 20
                times_s = [page.time_s for page in found.values()]
                assert all(asked_s - WINDOW_S <= at_s <= time.time() for at_s in times_s)

                del exporter.pages["q"]  # its page has vanished, then its samples are too old
                exporter.served("p", 14)
                await until(source, lambda found: set(found) == {"p"})
                await until(source, lambda found: arrivals(found, "p") == 14)

                exporter.served("q", 2, in_flight=1)  # restarted
                samples = PodSamples(PROFILE, None, Batch(largest=8))
                back = await until(source, lambda found: "q" in found)
                taken = [
                    samples.take(each["q"].page, pod="q", time_s=each["q"].time_s)
                    for each in (found, back)
                ]
                assert [one and one.arrivals for one in taken] == [20, 3]

                exporter.pages["p"] = "mosec_service_remaining_task NaN\n"
                await until(
                    source,
                    lambda found: "p" in found and str(found["p"].page.values[0]) == "nan",
                )

    asyncio.run(scenario())


def test_one_of_two_prometheus_replicas_may_die(program: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        with running(program, tmp_path, 2) as (exporter, (first, second)):
            exporter.served("p", 10)
            exporter.served("q", 20)
            async with PrometheusSource("main", [first.url, second.url]) as source:
                await until(source, lambda found: len(found) == 2)
                times = []
                for served in range(11, 15):
                    exporter.served("p", served)
                    found = await until(source, _shows("p", served))
                    times.append(found["p"].time_s)  # never the older of the two, never their sum
                assert times == sorted(times)

                first.kill()
                exporter.served("p", 15)
                await until(source, lambda found: arrivals(found, "p") == 15)
                second.kill()
                with pytest.raises(ScrapeFailed, match="Prometheus main"):
                    await pages(source)

                first.start()  # it remembers what it scraped, which is no longer recent
                exporter.served("p", 16)
                await until(source, lambda found: arrivals(found, "p") == 16)
                second.start()

    asyncio.run(scenario())


def test_prometheus_parses_any_name_as_a_label_value(program: Path, tmp_path: Path) -> None:
    names = ['"', "\\", '\\"', "\n", "`", "{", "}", "[5m]", "|", ".*", "(?i)", "$", "日本", "\x00"]
    names += ['p"} or up{x="', "a\\nb", "p q", "-", "%41", "'", "\t", "\x7f", "#", "&", "~"]

    async def scenario() -> None:
        with running(program, tmp_path, 1) as (exporter, (one,)):
            exporter.served("p", 1)
            async with PrometheusSource("main", [one.url]) as source:
                await until(source, lambda found: "p" in found)
                metrics = frozenset({"mosec_service_remaining_task", "up"})
                for name in names:
                    found = await source.pages(metrics, "shop", [name], WINDOW_S)
                    assert found == {}, name
                    assert await source.pages(metrics, name, ["p"], WINDOW_S) == {}, name

    asyncio.run(scenario())
