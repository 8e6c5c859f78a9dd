"""Commands without the libraries of an extra: some run, the others name the extra to install."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from headroom.cli.main import SIMULATOR


def without(libraries: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line of an installation that lacks libraries."""
    lacking = f"import sys; sys.modules |= dict.fromkeys({libraries!r})"
    program = f"{lacking}; from headroom.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("library", "arguments", "extra"),
    [
        pytest.param("numba", ["simulate", "step"], "simulator", id="simulator"),
        pytest.param("uvloop", ["run"], "operator", id="operator"),
        pytest.param("typer", ["plan", "--help"], "operator", id="any command"),
    ],
)
def test_command_without_its_libraries_says_what_to_install(
    library: str, arguments: list[str], extra: str
) -> None:
    result = without([library], *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        f"error: this command needs {library}, which is not installed: "
        f"pip install 'headroom[{extra}]'\n"
    )


def test_plan_runs_without_simulator_and_operator_libraries() -> None:
    sums = ["plan", "rate", "10", "--batch-overhead", "6ms", "--per-item-time", "4ms"]
    result = without(["numba", "aiohttp", "kopf", "kubernetes"], *sums)
    assert result.returncode == 0
    assert result.stdout.startswith("1 replica for 10 req/s")


def test_simulator_extra_has_the_listed_libraries() -> None:
    path = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    names = {name: {each.split(">")[0] for each in extras[name]} for name in extras}
    assert names["simulator"] - names["operator"] <= SIMULATOR
