"""A console that has seen a service for ten minutes."""

from __future__ import annotations

import pytest

from headroom.console.read_model import ReadModel
from headroom.controller.report.evaluation import Evaluation
from support.console_world import an_hour


@pytest.fixture(scope="module")
def lived() -> ReadModel:
    """The console after ten minutes of a service."""
    model, _ = an_hour(seconds=600.0)
    return model


@pytest.fixture(scope="module")
def last(lived: ReadModel) -> Evaluation:
    """The service's last evaluation."""
    found = lived.view("vision", "demo")
    assert found is not None
    assert found.history is not None
    assert found.history.last is not None
    return found.history.last
