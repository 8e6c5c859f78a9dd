"""The virtual clock: by time, then turn, then order of entry."""

from __future__ import annotations

from headroom.simulator.event_queue import EventQueue, Priority


def run(events: EventQueue, until_s: float) -> None:
    while events.next_s <= until_s:
        events.run_next()


def test_events_at_one_time_run_by_priority_then_insertion() -> None:
    events, done = EventQueue(), list[str]()
    for name, time_s, turn in (
        ("sample", 1.0, Priority.SAMPLE),
        ("decide", 1.0, Priority.DECIDE),
        ("later", 2.0, Priority.PODS),
        ("scrape, first entered", 1.0, Priority.SCRAPE),
        ("scrape, second", 1.0, Priority.SCRAPE),
        ("fault", 1.0, Priority.FAULTS),
        ("pods", 1.0, Priority.PODS),
    ):
        events.at(time_s, turn, lambda _, name=name: done.append(name))  # type: ignore[misc]
    run(events, 2.0)
    assert done == [
        *("pods", "fault", "scrape, first entered", "scrape, second", "decide", "sample"),
        "later",
    ]


def test_periodic_event_does_not_drift() -> None:
    events, times = EventQueue(), list[float]()
    events.every(0.1, Priority.DECIDE, times.append, start_s=0.1)
    run(events, 1000.05)
    assert len(times) == 10_000
    assert times[-1] == 0.1 + 9999 * 0.1


def test_action_can_schedule_another_at_the_same_time() -> None:
    events, done = EventQueue(), list[str]()

    def first(now_s: float) -> None:
        events.at(now_s, Priority.PODS, lambda _: done.append("entered"))
        done.append("first")

    events.at(1.0, Priority.FAULTS, first)
    events.at(1.0, Priority.DECIDE, lambda _: done.append("decide"))
    run(events, 1.0)
    assert done == ["first", "entered", "decide"]


def test_empty_event_queue_is_never_due() -> None:
    assert EventQueue().next_s == float("inf")
