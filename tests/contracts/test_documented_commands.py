"""Every command in the documents is valid, or listed with the reason why it is not run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cluster.images.builds import copied_sources
from headroom.cli.app import app
from scenarios.installation.documented import NOT_RUN, ON_A_SERVER, ROOT, STATIC, Command, commands

COMMANDS = sorted(set(commands()), key=lambda one: (one.page, one.text))
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))


def kind(command: Command) -> str:
    return command.begins_with((*STATIC, *ON_A_SERVER, *NOT_RUN))


def of(beginning: str) -> list[Command]:
    return [one for one in COMMANDS if kind(one) == beginning]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: f"{one.page}: {one.text[:60]}")
def test_documented_command_is_run_or_has_a_reason(command: Command) -> None:
    assert kind(command), (
        "run it, or add it to e2e/scenarios/installation/documented.py with the reason"
    )


def test_reason_is_used_by_a_command() -> None:
    used = {kind(command) for command in COMMANDS}
    assert set(NOT_RUN) <= used


@pytest.mark.parametrize(
    "command", [*of("headroom"), *of("kubectl headroom")], ids=lambda one: one.text[:60]
)
def test_headroom_command_accepts_documented_options(command: Command) -> None:
    words = command.words[2 if kind(command) == "kubectl headroom" else 1 :]
    done = CliRunner().invoke(app, [*words, "--help"])  # parses all options, runs nothing
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("command", of("make"), ids=lambda one: one.text)
def test_make_target_exists(command: Command) -> None:
    for word in command.words[1:]:
        variable, assigned, _ = word.partition("=")
        assert variable in MAKEFILE if assigned else word in TARGETS


@pytest.mark.parametrize("command", of("docker build"), ids=lambda one: one.text)
def test_documented_image_has_dockerfile_and_sources(command: Command) -> None:
    words = command.words
    dockerfile = ROOT / words[words.index("-f") + 1]
    for source in copied_sources(dockerfile.read_text()):
        assert Path(ROOT / source).exists()
