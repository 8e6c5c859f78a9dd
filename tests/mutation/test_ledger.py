"""What became of a bug is kept, and which bugs are known to show nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation.equivalent import EQUIVALENT, reason
from mutation.ledger import Ledger, digest_of

ROOT = Path(__file__).parents[2] / "operator" / "headroom"


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "seed.jsonl"
    ledger = Ledger(file)
    assert ledger.outcome("a.py", "broken", "t1") is None
    ledger.note("a.py", "broken", "t1", noticed=True)
    ledger.note("a.py", "worse", "t1", noticed=False)
    again = Ledger(file)
    assert again.outcome("a.py", "broken", "t2") is True
    assert again.outcome("a.py", "worse", "t1") is False
    assert again.outcome("a.py", "worse", "t2") is None, "other tests have not met it"
    assert again.outcome("b.py", "worse", "t1") is None


def test_tests_that_change_are_other_tests(tmp_path: Path) -> None:
    file = tmp_path / "test_a.py"
    file.write_text("one")
    before = digest_of([file])
    assert digest_of([file]) == before
    file.write_text("other")
    assert digest_of([file]) != before


@pytest.mark.parametrize("known", EQUIVALENT, ids=lambda one: f"{one.module}: {one.sound}")
def test_a_line_that_may_be_broken_stands_where_it_is_said_to(known: object) -> None:
    module, sound, _ = known  # type: ignore[misc]
    lines = (ROOT / module).read_text().splitlines()
    found = [line for line in lines if sound in line]
    assert len(found) == 1
    text = "\n".join(lines)
    assert reason(module, text, text.replace(found[0], found[0] + "0"))
    assert not reason(module, text, text.replace(lines[0], "x"))
    assert not reason("other.py", text, text.replace(found[0], found[0] + "0"))
