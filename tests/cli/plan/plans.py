"""`headroom plan` in a process, for tests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from headroom.cli.app import app

pytestmark = pytest.mark.clock


def plan(line: str) -> Result:
    return CliRunner().invoke(app, ["plan", *line.split()])


def report(line: str) -> Any:
    result = plan(line + " -o json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)
