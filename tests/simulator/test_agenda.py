"""The virtual clock: by time, then turn, then order of entry."""

from __future__ import annotations

from headroom.simulator.agenda import Agenda, Turn


def run(agenda: Agenda, until_s: float) -> None:
    while agenda.next_s <= until_s:
        agenda.run_next()


def test_what_is_due_together_happens_in_its_turn_and_then_in_order_of_entry() -> None:
    agenda, done = Agenda(), list[str]()
    for name, time_s, turn in (
        ("sample", 1.0, Turn.SAMPLE),
        ("decide", 1.0, Turn.DECIDE),
        ("later", 2.0, Turn.PODS),
        ("scrape, first entered", 1.0, Turn.SCRAPE),
        ("scrape, second", 1.0, Turn.SCRAPE),
        ("fault", 1.0, Turn.FAULTS),
        ("pods", 1.0, Turn.PODS),
    ):
        agenda.at(time_s, turn, lambda _, name=name: done.append(name))  # type: ignore[misc]
    run(agenda, 2.0)
    assert done == [
        *("pods", "fault", "scrape, first entered", "scrape, second", "decide", "sample"),
        "later",
    ]


def test_a_period_does_not_drift() -> None:
    agenda, times = Agenda(), list[float]()
    agenda.every(0.1, Turn.DECIDE, times.append, start_s=0.1)
    run(agenda, 1000.05)
    assert len(times) == 10_000
    assert times[-1] == 0.1 + 9999 * 0.1


def test_an_action_may_enter_another_for_the_same_instant() -> None:
    agenda, done = Agenda(), list[str]()

    def first(now_s: float) -> None:
        agenda.at(now_s, Turn.PODS, lambda _: done.append("entered"))
        done.append("first")

    agenda.at(1.0, Turn.FAULTS, first)
    agenda.at(1.0, Turn.DECIDE, lambda _: done.append("decide"))
    run(agenda, 1.0)
    assert done == ["first", "entered", "decide"]


def test_an_empty_agenda_is_due_never() -> None:
    assert Agenda().next_s == float("inf")
