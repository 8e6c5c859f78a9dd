"""Selection of the failures of ticks that are logged, for many services in a minute."""

from __future__ import annotations

import pytest

from headroom.controller.scheduling.failure_log import MOST_LINES, FailureLog
from headroom.errors import Forbidden, Rejected, Unavailable


@pytest.mark.parametrize("error", [Unavailable("503"), TimeoutError()], ids=["503", "slow"])
def test_trouble_that_services_share_is_bounded_and_counted(error: Exception) -> None:
    log = FailureLog()
    lines = [log.line(error, "words", number / 100.0) for number in range(1000)]
    assert lines[:MOST_LINES] == ["words"] * MOST_LINES
    assert set(lines[MOST_LINES:]) == {None}
    assert log.line(error, "words", 61.0) == "words (990 more failed before and were not logged)"
    assert log.line(error, "words", 62.0) == "words"


@pytest.mark.parametrize("error", [Forbidden("no"), Rejected("no"), ValueError("a bug")])
def test_trouble_of_one_service_is_always_logged(error: Exception) -> None:
    log = FailureLog()
    assert {log.line(error, "words", 0.0) for _ in range(100)} == {"words"}
