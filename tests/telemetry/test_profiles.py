"""Every profile reads its server's pages: recorded under load, or composed from documentation."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headroom.profiles import PROFILES, Profile
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.errors import InvalidMetric, MissingMetric, TelemetryError
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples

PAGES = Path(__file__).parent / "pages"
BATCH = Batch(largest=8)
SECONDS = {"mosec": 2.004, "triton": 2.858, "mlserver": 2.034, "ray": 9.282}
"""Time between the two recorded pages; composed ones are ten seconds apart."""


def page(server: str, which: str) -> str:
    return (PAGES / f"{server}_{which}.prom").read_text()


def samples(server: str, batch: Batch = BATCH) -> tuple[PodSample | None, PodSample]:
    reader = PodSamples(PROFILES[server], None, batch)
    first = reader.take(page(server, "first"), pod="u", time_s=100.0)
    elapsed_s = SECONDS.get(server, 10.0)
    second = reader.take(page(server, "second"), pod="u", time_s=100.0 + elapsed_s)
    assert second is not None
    return first, second


@pytest.mark.parametrize(
    ("server", "arrivals", "missed", "waiting", "running"),
    [
        # 3625 answered; one malformed request is the client's mistake; 16 in flight, 8 in the batch
        ("mosec", 3641, 0, 8, 8),
        # 5146 answered, 16 waiting, 56.1 s less 32.8 s of compute in 2.86 s: 7.9 running
        ("triton", 5146 + 16 + 8, 0, 16, 8),
        ("mlserver", 1388 + 7, 0, 0, 7),
        # one answered with 500; 2 in the replica, none queued before it
        ("ray", 2415 + 1 + 2, 1, 0, 2),
        # 420 well, 3 aborted or failed, 5 waiting, 24 running
        ("vllm", 452, 3, 5, 24),
        # the queue of grammars counts as waiting
        ("sglang", 250 + 4 + 7 + 10, 4, 7, 10),
        ("tgi", 135, 5, 2, 8),
        # 800 requests of 0.03 s in 10 s: 2.4 running
        ("tei", 1817, 2, 7, 2),
        # 100 requests in 10 s: 0.3 s queued and 0.2 s after it, so 3 waiting and 2 running
        ("torchserve", 505, 0, 3, 2),
    ],
)
def test_server_under_load_yields_a_sample(
    server: str, arrivals: int, missed: int, waiting: int, running: int
) -> None:
    _, sample = samples(server)
    assert (sample.arrivals, sample.waiting, sample.running) == (arrivals, waiting, running)
    assert sample.missed == missed
    assert sample.max_batch == 8


@pytest.mark.parametrize(
    ("server", "size", "batch_s"),
    [
        # the model sleeps 10 ms for a batch of 8; the rest is the server's own
        ("mosec", 8.0, 0.011),
        ("triton", 8.0, 0.011),
        ("mlserver", 7.8, 0.028),
        ("ray", 1.7, 0.009),
        # 12 a second that take 2 s each: 24 at a time
        ("vllm", 24.0, 2.0),
        ("sglang", 10.0, 2.0),
        ("tgi", 6.0, 2.0),
        # 100 batches in 800 requests of 0.03 s each
        ("tei", 8.0, 0.03),
        ("torchserve", 2.0, 0.2),
    ],
)
def test_batch_time_is_derived_from_two_pages(server: str, size: float, batch_s: float) -> None:
    reader = PodSamples(PROFILES[server], None, Batch(largest=256))
    reader.take(page(server, "first"), pod="u", time_s=100.0)
    before = reader._accounts["u"]
    after = reader.take(page(server, "second"), pod="u", time_s=100.0 + SECONDS.get(server, 10.0))
    assert after is not None
    batches = after.batches - before.executed.batches
    assert (after.batch_items - before.executed.items) / batches == pytest.approx(size, rel=0.03)
    assert (after.batch_seconds - before.executed.seconds) / batches == pytest.approx(
        batch_s, rel=0.06
    )


@pytest.mark.parametrize(
    ("server", "answered", "bounds"),
    [
        ("mosec", 3625, 14),
        ("mlserver", 1388, 15),
        ("ray", 2415, 20),
        ("vllm", 423, 22),
        ("sglang", 250, 23),
        ("tgi", 120, 36),
        ("tei", 1800, 36),
    ],
)
def test_latency_bounds_are_seconds_up_to_infinity(server: str, answered: int, bounds: int) -> None:
    _, sample = samples(server)
    assert sample.latency.counts[-1] == answered
    assert len(sample.latency.bounds_s) == bounds
    assert sample.latency.bounds_s[-1] == math.inf
    assert sample.latency.bounds_s[-2] <= 7680.0


@pytest.mark.parametrize("server", ["triton", "torchserve"])
def test_server_without_histogram_has_no_latency_and_no_misses(server: str) -> None:
    """Otherwise a failure would be the only request known to have ended."""
    first, sample = samples(server)
    assert first is None  # what it leaves out needs two pages
    assert (sample.latency.bounds_s, sample.latency.counts, sample.missed) == ((), (), 0.0)
    assert PROFILES[server].missing[0].startswith("There is no latency histogram")


@pytest.mark.parametrize("server", ["mosec", "mlserver", "vllm", "sglang"])
def test_idle_server_without_counters_reads_as_zero(server: str) -> None:
    """Its counters and histograms appear with the first request."""
    reader = PodSamples(PROFILES[server], None, BATCH)
    idle = reader.take(page(server, "fresh"), pod="u", time_s=1.0)
    assert idle is not None
    assert (idle.arrivals, idle.waiting, idle.running) == (0, 0, 0)
    _, loaded = samples(server)
    assert idle.latency.bounds_s == loaded.latency.bounds_s
    assert set(idle.latency.counts) == {0.0}


@pytest.mark.parametrize("server", ["tgi", "tei", "torchserve"])
def test_empty_page_of_a_lazy_server_reads_as_idle(server: str) -> None:
    reader = PodSamples(PROFILES[server], None, BATCH)
    taken = [reader.take("# TYPE x gauge\n", pod="u", time_s=time_s) for time_s in (1.0, 2.0)]
    assert taken[1] is not None
    assert (taken[1].arrivals, taken[1].waiting, taken[1].running) == (0, 0, 0)


@pytest.mark.parametrize("server", sorted(PROFILES))
@pytest.mark.parametrize("other", sorted(PROFILES))
def test_page_of_another_server_is_rejected(server: str, other: str) -> None:
    if server == other or other == "headroom":
        return
    if (server, other) == ("vllm", "dynamo"):  # a worker of Dynamo has vLLM's names
        return
    with pytest.raises(TelemetryError):
        PodSamples(PROFILES[server], None, BATCH).take(page(other, "second"), pod="u", time_s=1.0)


def test_unnamed_model_is_the_only_one_on_the_page() -> None:
    two = page("triton", "second") + page("triton", "second").replace(
        'model="model"', 'model="bert"'
    ).partition("\n")[2].replace("nv_pinned", "x_pinned").replace("nv_cpu", "x_cpu")
    with pytest.raises(InvalidMetric, match=r"unless spec\.model\.name names it"):
        PodSamples(PROFILES["triton"], None, BATCH).take(two, pod="u", time_s=1.0)
    named = PodSamples(PROFILES["triton"], "bert", BATCH)
    assert named.take(two, pod="u", time_s=1.0) is None
    assert named.take(two, pod="u", time_s=2.0) is not None
    with pytest.raises(MissingMetric, match="the page has model 'model'"):
        PodSamples(PROFILES["triton"], "gpt", BATCH).take(
            page("triton", "second"), pod="u", time_s=1.0
        )


def test_series_of_ranks_and_versions_are_summed() -> None:
    ranks = page("vllm", "second") + page("vllm", "second").replace('engine="0"', 'engine="1"')
    sample = PodSamples(PROFILES["vllm"], None, Batch(largest=256)).take(ranks, pod="u", time_s=1.0)
    assert sample is not None
    assert (sample.arrivals, sample.waiting, sample.running) == (904, 10, 48)
    assert sample.latency.counts[-1] == 846


def test_arrivals_do_not_decrease_while_a_request_moves_between_counters() -> None:
    reader = PodSamples(PROFILES["mosec"], None, BATCH)
    steps = ((0.0, 10, 4), (1.0, 11, 2), (2.0, 12, 2))
    arrivals = []
    for time_s, answered, in_flight in steps:
        text = (
            f'mosec_service_throughput_total{{code="200",endpoint="/x"}} {answered}\n'
            f"mosec_service_remaining_task {in_flight}\n"
        )
        sample = reader.take(text, pod="u", time_s=time_s)
        assert sample is not None
        arrivals.append(sample.arrivals)
    assert arrivals == [14, 14, 14]


def test_restarted_server_counts_from_zero() -> None:
    reader = PodSamples(PROFILES["triton"], None, BATCH)
    reader.take(page("triton", "first"), pod="u", time_s=0.0)
    before = reader.take(page("triton", "second"), pod="u", time_s=2.858)
    assert before is not None
    assert reader.take(page("triton", "fresh"), pod="u", time_s=5.0) is None
    after = reader.take(page("triton", "fresh"), pod="u", time_s=7.0)
    assert after is not None
    assert (after.arrivals, after.batches, after.batch_seconds) == (0, 0, 0)
    assert before.batches > 0


@pytest.mark.parametrize("time_s", [102.858, 100.0])
def test_page_that_is_not_newer_changes_nothing(time_s: float) -> None:
    """A Prometheus returns the same page until its next scrape."""
    reader = PodSamples(PROFILES["triton"], None, BATCH)
    reader.take(page("triton", "first"), pod="u", time_s=100.0)
    sample = reader.take(page("triton", "second"), pod="u", time_s=102.858)
    assert sample is not None
    assert reader.take(page("triton", "first"), pod="u", time_s=time_s) is sample


@pytest.mark.parametrize(("again_s", "new"), [(0.02, False), (0.5, False), (1.0, True)])
def test_page_soon_after_another_is_no_queue(again_s: float, new: bool) -> None:
    """A batch of 8 ends every 0.1 s, and its requests waited for 2 s: 160 wait at any time."""
    reader = PodSamples(PROFILES["torchserve"], None, BATCH)

    def taken(time_s: float) -> PodSample | None:
        ended, labels = 8 * math.floor(time_s / 0.1), '{model_name="m",}'
        text = (
            f"ts_inference_requests_total{labels} {ended}\n"
            f"ts_queue_latency_microseconds{labels} {ended * 2.0e6}\n"
            f"ts_inference_latency_microseconds{labels} {ended * 2.1e6}\n"
        )
        return reader.take(text, pod="u", time_s=100.0 + time_s)

    taken(0.09)
    before = taken(2.09)
    assert before is not None
    again = taken(2.09 + again_s)
    assert (again is not before) == new
    after = taken(4.09)
    assert after is not None
    for one in (before, again, after):
        assert one is not None
        assert one.waiting == pytest.approx(160, rel=0.06)
    assert after.arrivals - before.arrivals == pytest.approx(160, rel=0.06)


def test_deleted_pods_are_discarded() -> None:
    reader = PodSamples(PROFILES["mosec"], None, BATCH)
    for pod in ("a", "b"):
        reader.take(page("mosec", "first"), pod=pod, time_s=1.0)
    reader.keep(["b"])
    assert set(reader._accounts) == {"b"}


def test_idle_pod_uses_the_bounds_of_other_pods() -> None:
    """Other bounds would restart every window of the service."""
    reader = PodSamples(PROFILES["mosec"], None, BATCH)
    other = page("mosec", "first").replace('le="4.096"', 'le="5.0"')
    busy = reader.take(other, pod="a", time_s=1.0)
    idle = reader.take(page("mosec", "fresh"), pod="b", time_s=1.0)
    assert busy is not None
    assert idle is not None
    assert idle.latency.bounds_s == busy.latency.bounds_s


@pytest.mark.parametrize("file", sorted(path.name for path in PAGES.iterdir()))
def test_recorded_page_names_its_source_and_parses_officially(file: str) -> None:
    text = (PAGES / file).read_text()
    assert text.startswith(("# Recorded from ", "# Composed from the definitions "))
    if not file.startswith("torchserve"):  # its comma before the brace is beyond that parser
        assert list(text_string_to_metric_families(text))


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_profile_is_complete(name: str) -> None:
    one = PROFILES[name]
    assert one.waiting or one.waiting_seconds or one.in_flight
    assert one.running or one.running_seconds or one.in_flight
    assert one.answered or one.latency or name == "llamacpp"
    assert one.batch_setting
    assert one.missing or name == "headroom"
    assert all(text.endswith((".", ").")) for text in one.missing)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda one: one.name)
def test_prefix_keeps_every_metric_of_the_profile(profile: Profile) -> None:
    assert all(name.startswith(profile.prefix) for name in profile.metric_names)
