"""Events are posted as the API server accepts them, whatever a pod's message holds."""

from __future__ import annotations

import pytest

from headroom.controller.report.events import Event, manifest

REGARDING = {"name": "a", "namespace": "shop", "uid": "1"}


@pytest.mark.parametrize(
    ("note", "kept"),
    [
        pytest.param("x" * 2000, "x" * 1024, id="ASCII"),
        pytest.param("\u6587" * 1024, "\u6587" * 341, id="three bytes each"),
        pytest.param("x" + "\u00e9" * 1024, "x" + "\u00e9" * 511, id="between characters"),
        pytest.param("\ud800", "?", id="no character"),
    ],
)
def test_note_has_at_most_1024_bytes(note: str, kept: str) -> None:
    event = Event(reason="ReplicasBroken", note=note, action="Evaluate")
    found = manifest(event, REGARDING, now_s=0.0, instance="a")["note"]
    assert found == kept
    assert len(found.encode()) <= 1024
