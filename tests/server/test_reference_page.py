"""The server's reference: every setting, key and metric, read from the code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headroom_server.reference.page import page
from headroom_server.settings import Settings
from headroom_server.settings_sources import variable


@pytest.mark.parametrize(
    "row",
    [
        "| `--host` | `HEADROOM_HOST` | `0.0.0.0` | Address to listen on. |",
        "| `inputs[].shape` | list of integer |  |",
        "| `classes.NAME.priority` | integer | `5` |",
        "| `format` | safetensors or export or aotinductor | `safetensors` |",
        "| `headroom_cache_bytes` | gauge | Bytes of cached answers. |",
        "| `headroom_batch_size` | histogram | Items per batch. |",
    ],
)
def test_reference_has_rows_from_the_code(row: str) -> None:
    assert row in page().splitlines()


def test_reference_explains_every_setting() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `--")]
    assert len(rows) == len(Settings.model_fields)
    assert all(any(variable(key) in row for row in rows) for key in Settings.model_fields)
    assert [row for row in rows if row.endswith("|  |")] == []


def test_reference_command_prints_the_page() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headroom_server", "reference"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == page()
