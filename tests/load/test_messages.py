"""Messages of the load generator, written and read back."""

from __future__ import annotations

from collections import Counter

import pytest

from load.messages import Message, Progress, Started, Summary, Window, read, read_all, write
from load.outcomes import Outcome
from load.statistics import Tally

TALLY = Tally(Counter({Outcome.OK: 3, Outcome.LOST: 1}), 2, Counter({300: 3}))
MESSAGES: list[Message] = [
    Started(unix_s=1.5, requests=4, duration_s=330.0, target_s=1.5),
    Started(unix_s=1.5, requests=None, duration_s=330.0, target_s=1.5),
    Progress(at_s=1.0, due=4, in_flight=1, tally=TALLY),
    Window(start_s=10.0, duration_s=10.0, tally=TALLY),
    Summary(
        requests=4,
        tally=TALLY,
        retried=1,
        connections=2,
        late_p99_s=0.003,
        failures=(("lost: reset", 1),),
        tries=6,
        first=Tally(Counter({Outcome.OK: 2, Outcome.LOST: 2}), 1, Counter({300: 2})),
    ),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_is_one_line_and_reads_back_as_itself(message: Message) -> None:
    line = write(message)
    assert "\n" not in line
    assert read(line) == message


def test_foreign_and_truncated_lines_are_skipped() -> None:
    lines = [write(message) for message in MESSAGES]
    text = "\n".join(["Traceback", *lines, '{"level": "info"}', "[1]", lines[3][:-20]])
    assert read_all(text) == MESSAGES


def test_a_message_with_other_fields_is_an_error() -> None:
    with pytest.raises(ValueError, match="progress message has unknown fields"):
        read('{"kind":"progress","at":1}')


def test_the_summary_as_text_separates_first_tries_from_outcomes() -> None:
    summary = MESSAGES[-1]
    assert isinstance(summary, Summary)
    words = summary.as_text()
    assert words.startswith("4 requests, first tries: 25.0 % in time, 25.0 % late, 50.0 % failed;")
    assert "to the last try: 50.0 % in time" in words
    assert words.endswith("6 tries, 2 connections")
