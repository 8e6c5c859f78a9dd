"""Pages that stay the same while requests are in flight say nothing, and later no burst."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from headroom.scaling import Freshness, Observation, PodSample, Reason
from headroom.scaling.values.tokens import GenerationSample
from headroom.scaling.windows.plausibility.repeated_pages import REAL_S, RepeatedPages
from support.fakes_scaling import COST, Service, sample


@dataclass
class Busy(Service):
    """Each page has two running requests; those of `frozen` replicas stay as they are."""

    frozen: int = 0
    pages: dict[str, PodSample] = field(default_factory=dict)

    def samples(self) -> tuple[PodSample, ...]:
        now = {one.pod: replace(one, running=2) for one in super().samples()}
        for uid, page in list(self.pages.items())[: self.frozen]:
            now[uid] = replace(page, time_s=self.now_s)
        self.pages = now
        return tuple(now.values())


@pytest.mark.parametrize("frozen", [1, 2, 4], ids=["one", "half", "all"])
@pytest.mark.parametrize("seconds", [20, 60, 300])
def test_pages_that_freeze_and_go_on_move_no_replica(frozen: int, seconds: int) -> None:
    service = Busy(rate_rps=28.0, replicas=4)
    service.run(200)
    assert service.replicas == 4
    settled = len(service.decisions)
    service.frozen = frozen
    decision = service.run(seconds)
    assert decision.signals.freshness is not Freshness.FRESH
    named = {one.pod: one.why for one in decision.left_out}
    assert list(named) == [f"pod-{number}" for number in range(frozen)]
    assert named["pod-0"] == f"has shown the same page for {seconds}s with requests in flight"
    service.frozen = 0
    service.run(200)
    assert {decision.replicas for decision in service.decisions[settled:]} == {4}


def test_service_without_requests_in_flight_is_idle_and_not_frozen() -> None:
    service = Service(rate_rps=28.0, replicas=4)
    service.run(200)
    service.rate_rps = 0.0
    service.run(400)
    assert service.replicas == 1


def test_gauge_that_is_wrong_for_ten_minutes_keeps_no_replica() -> None:
    service = Busy(rate_rps=28.0, replicas=4)
    service.run(200)
    service.rate_rps = 0.0
    service.run(REAL_S - 20)
    assert service.replicas == 4
    service.run(300)
    assert service.replicas == 1


@pytest.mark.parametrize(
    ("later", "left_out"),
    [
        pytest.param({}, True, id="the same"),
        pytest.param({"arrivals": 101.0}, False, id="an arrival"),
        pytest.param({"batches": (11.0, 41.0, 4.0)}, False, id="a batch"),
        pytest.param({"waiting": 2}, False, id="a request that starts"),
    ],
)
def test_page_is_left_out_while_nothing_in_it_changes(
    later: dict[str, object], left_out: bool
) -> None:
    before = sample("a", 100.0, 100.0, waiting=3, running=4, batches=(10.0, 40.0, 3.9))
    page: dict[str, object] = {"waiting": 3, "running": 4, "batches": (10.0, 40.0, 3.9)}
    now = sample("a", 110.0, **{"arrivals": 100.0, **page, **later})  # type: ignore[arg-type]
    observation = Observation(now_s=110.0, current=1, samples=(now,))
    _, kept = RepeatedPages().without(observation, {"a": before}, COST)
    assert kept.samples == (() if left_out else (now,))


def test_page_may_stay_the_same_for_as_long_as_some_batches_take() -> None:
    slow = replace(COST, fixed_s=20.0)  # full batches take 20.24 s
    page, repeated = sample("a", 100.0, 9.0, running=1), RepeatedPages()
    last, taken = {"a": page}, list[float]()
    for now_s in range(102, 200, 2):
        observation = Observation(
            now_s=now_s, current=1, samples=(replace(page, time_s=float(now_s)),)
        )
        repeated, kept = repeated.without(observation, last, slow)
        for one in kept.samples:
            last["a"] = one
            taken.append(one.time_s)
    assert taken[-1] == 160.0


def test_lost_scrape_does_not_make_a_repeated_page_new() -> None:
    page = sample("a", 100.0, 9.0, running=1)
    one = Observation(now_s=110.0, current=1, samples=(replace(page, time_s=110.0),))
    repeated, _ = RepeatedPages().without(one, {"a": page}, COST)
    repeated, _ = repeated.without(replace(one, now_s=112.0, samples=()), {"a": page}, COST)
    assert repeated.since_s == {"a": 100.0}
    assert RepeatedPages(since_s={"b": 1.0}).without(one, {}, COST)[0].since_s == {}


@pytest.mark.parametrize(
    ("iterations", "left_out"),
    [
        pytest.param(50.0, True, id="the count of iterations did not change"),
        pytest.param(None, False, id="none are counted: an answer may take minutes"),
        pytest.param(0.0, False, id="none were counted"),
    ],
)
def test_page_of_a_generating_replica_changes_with_its_iterations(
    iterations: float | None, left_out: bool
) -> None:
    page = replace(
        sample("a", 100.0, 9.0, running=1, cost=None),
        generation=GenerationSample(iterations=iterations),
    )
    one = Observation(now_s=106.0, current=1, samples=(replace(page, time_s=106.0),))
    assert RepeatedPages().without(one, {"a": page}, None)[1].samples == (
        () if left_out else one.samples
    )


def test_without_a_cost_no_page_is_left_out() -> None:
    page = sample("a", 100.0, 9.0, running=1)
    one = Observation(now_s=900.0, current=1, samples=(replace(page, time_s=300.0),))
    assert RepeatedPages().without(one, {"a": page}, None)[1] is one


@dataclass
class WrittenNowAndThen(Service):
    """Replicas that write their page every `written_s`, each at its own time, at half load."""

    written_s: float = 10.0
    pages: dict[str, tuple[int, PodSample]] = field(default_factory=dict)

    def samples(self) -> tuple[PodSample, ...]:
        shown = []
        for number, one in enumerate(super().samples()):
            write = int((self.now_s + 2.0 * number) // self.written_s)
            if one.pod not in self.pages or self.pages[one.pod][0] != write:
                running = 2 if (write + number) % 2 else 0  # half of the pages show none
                self.pages[one.pod] = write, replace(one, running=running)
            shown.append(replace(self.pages[one.pod][1], time_s=self.now_s))
        return tuple(shown)


@pytest.mark.parametrize("written_s", [6.0, 10.0, 14.0])
def test_pages_that_are_written_now_and_then_are_no_bursts(written_s: float) -> None:
    fresh = Service(rate_rps=28.0, replicas=4)
    fresh.run(1200)
    service = WrittenNowAndThen(rate_rps=28.0, replicas=4, written_s=written_s)
    service.run(200)
    settled = len(service.decisions)
    service.run(1000)
    bursts = [one for one in service.decisions[settled:] if one.reason is Reason.BURST]
    assert not bursts
    assert service.replicas == fresh.replicas == 4


def test_single_executions_that_take_long_do_not_show_that_pages_repeat() -> None:
    repeated, last = RepeatedPages(), {"a": sample("a", 100.0, 9.0, running=1)}
    for turn in range(1, 8):
        began_s = 100.0 * turn
        pages = [sample("a", began_s + 2.0 * tick, 8.0 + turn, running=1) for tick in range(9)]
        pages += [sample("a", began_s + 18.0 + 2.0 * tick, 8.0 + turn) for tick in range(9)]
        for page in pages:
            observation = Observation(now_s=page.time_s, current=1, samples=(page,))
            repeated, kept = repeated.without(observation, last, COST)
            last |= {one.pod: one for one in kept.samples}
            assert page.running or kept.samples
    assert not repeated.proved


@pytest.mark.parametrize(
    ("idle_ticks", "written"),
    [pytest.param(0, True, id="a page of 10 s"), pytest.param(4, False, id="clumps that last")],
)
def test_pages_that_also_change_soon_are_written_all_the_time(
    idle_ticks: int, written: bool
) -> None:
    """Clumps of requests whose executions take long look like pages that are written seldom."""
    repeated, last = RepeatedPages(), {"a": sample("a", 100.0, 9.0, running=2)}
    for turn in range(8):
        counted, began_s = 9.0 + 20.0 * turn, 100.0 + 20.0 * turn
        pages = [sample("a", began_s + 2.0 * tick, counted, running=2) for tick in range(10)]
        for tick in range(idle_ticks):  # one request ends at each tick
            pages[tick] = sample("a", pages[tick].time_s, counted - 4.0 + tick, running=6 - tick)
        for page in pages[1:]:
            observation = Observation(now_s=page.time_s, current=1, samples=(page,))
            repeated, kept = repeated.without(observation, last, COST)
            last |= {one.pod: one for one in kept.samples}
    assert (repeated.written_s > 0.0) is written
