"""The outcome for a bug is kept, and which bugs are known to show nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation.equivalent import EQUIVALENT, Equivalent, reason
from mutation.ledger import Ledger, Measures

ROOT = Path(__file__).parents[2] / "operator" / "headroom"


def test_ledger_resumes_a_stopped_run(tmp_path: Path) -> None:
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


def test_measures_are_valid_for_one_state(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "sound.json"
    assert Measures(file, "a").read() is None
    Measures(file, "a").write({"durations": {"t": 1.5}})
    assert Measures(file, "a").read() == {"durations": {"t": 1.5}}
    assert Measures(file, "b").read() is None


@pytest.mark.parametrize("known", EQUIVALENT, ids=lambda one: f"{one.module}: {one.sound}")
def test_equivalent_mutations_match_their_module_exactly(
    known: Equivalent,
) -> None:
    text = (ROOT / known.module).read_text()
    assert text.count(known.sound) == 1
    for other in known.broken:
        broken = text.replace(known.sound, other.replace(" = ", " =  "))
        assert reason(f"operator/headroom/{known.module}", text, broken) == known.reason
        assert not reason("other.py", text, broken)
        assert not reason(known.module, text, broken.replace("return", "yield", 1))
    assert not reason(known.module, text, text)
