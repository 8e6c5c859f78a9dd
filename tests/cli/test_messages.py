"""Text from files and servers controls no terminal, in any command's messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import headroom.cli
from headroom.cli.app import app
from headroom.cli.messages import say

STEERING = "\x1b]0;renamed\x07\x1b[2J\u202e"


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def test_key_of_a_scenario_is_spelled(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "a"\n"\\u001b]0;renamed\\u0007\\nerror: made up\\u202e" = 1\n')
    said = run("simulate", str(path))
    (first,) = said.stderr.splitlines()
    assert r"line 2: \x1b]0;renamed\x07 error: made up\u202e: must be one of" in first


def test_names_of_files_are_spelled(tmp_path: Path) -> None:
    trace = tmp_path / f"{STEERING}.csv"
    trace.write_text("t_s,requests\n0,60\n60,60\n")
    cost = ("--batch-overhead", "6ms", "--per-item-time", "4ms", "--max-batch", "8")
    planned = run("plan", "trace", str(trace), *cost, "--target", "100ms")
    assert planned.exit_code == 0, planned.output
    trace.write_text("x")
    refused = run("plan", "trace", str(trace), *cost, "--target", "100ms")
    for said in (planned, refused):
        assert r"\x1b]0;renamed\x07\x1b[2J\u202e.csv" in said.output
        assert "\x1b" not in said.output


def test_lines_of_a_message_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"error: {STEERING}a\nb")
    assert capsys.readouterr().err == "error: \\x1b]0;renamed\\x07\\x1b[2J\\u202ea\nb\n"


def test_commands_write_to_standard_error_through_messages_alone() -> None:
    folder = Path(headroom.cli.__file__).parent
    others = [one for one in folder.rglob("*.py") if " err=True" in one.read_text("utf-8")]
    assert [one.name for one in others] == ["messages.py"]
