"""The modules to mutate, the tests to run, and that a planted bug is noticed."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from mutation.sandbox import Sandbox
from mutation.targets import CONTROLLER, GUARDS, SCALING, nearest_tests

ROOT = Path(__file__).parents[2]
PRESENT = [
    PurePosixPath(path)
    for path in (
        "tests/scaling/limits/test_limits.py",
        "tests/scaling/limits/test_flaps.py",
        "tests/controller/sharing/test_pool.py",
        "tests/leadership/test_candidate.py",
        "tests/simulator/test_limits_of_plants.py",
    )
]


def test_named_guards_exist() -> None:
    assert [name for name in GUARDS if not (ROOT / CONTROLLER / f"{name}.py").exists()] == []


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        (
            SCALING / "limits" / "flaps.py",
            [("tests/scaling/limits/test_flaps.py",), ("tests/scaling",)],
        ),
        (SCALING / "decider.py", [("tests/scaling",)]),
        (
            CONTROLLER / "leadership" / "candidate.py",
            [("tests/leadership/test_candidate.py",), ("tests/controller", "tests/leadership")],
        ),
    ],
)
def test_nearest_tests_run_first(module: PurePosixPath, stages: list[tuple[str, ...]]) -> None:
    assert nearest_tests(module, PRESENT) == stages


def test_sandbox_notices_bug_and_accepts_sound_module(tmp_path: Path) -> None:
    (tmp_path / "operator").mkdir()
    (tmp_path / "tests").mkdir()
    sound = "def double(number):\n    return 2 * number\n"
    (tmp_path / "operator" / "doubling.py").write_text(sound)
    (tmp_path / "tests" / "test_doubling.py").write_text(
        "from doubling import double\n\n\ndef test_it():\n    assert double(3) == 6\n"
    )
    (tmp_path / "tests" / "red.py").write_text("def test_it():\n    assert False\n")
    with Sandbox(tmp_path, imported=()) as sandbox:
        assert not sandbox.has_measured(["tests"])
        assert sandbox.measure(["tests"]) > 0.0
        measures = sandbox.measures()
        sandbox.take(measures)
        assert sandbox.has_measured(["tests"])
        assert sandbox.measures() == measures
        assert [one for one in measures["durations"] if one.endswith("test_it")]
        assert sandbox.notices("operator/doubling.py", sound.replace("*", "+"), [["tests"]])
        assert not sandbox.notices("operator/doubling.py", sound, [["tests"]])
        assert sandbox.notices("operator/doubling.py", "broken(", [["tests"]])
        with pytest.raises(RuntimeError, match="no test ran"):
            sandbox.notices("operator/doubling.py", sound, [["tests/none"]])
        with pytest.raises(RuntimeError, match="without any bug"):
            sandbox.measure(["tests/red.py"])
