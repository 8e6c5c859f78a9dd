"""Pages of many services: same result and same cost as those of a few."""

from __future__ import annotations

import time

import pytest

from headroom.profiles.headroom import HEADROOM
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.pages.exposition import ExpositionReader
from headroom.telemetry.pages.profile_reader import ProfileReader
from headroom.telemetry.pages.reading import Reading
from support.pods_world import page


def read_unchanged(text: str, model: str) -> Reading:
    return ProfileReader(HEADROOM).read(ExpositionReader(HEADROOM.metric_names).read(text), model)


@pytest.mark.parametrize("model", ["resnet", "org/model-7b:v1", "a b", 'with "quotes"', "", "ok"])
def test_placeholder_for_the_model_changes_no_result(model: str) -> None:
    escaped = model.replace('"', '\\"')
    text = page(model=escaped, served=17, running=3)
    assert ProfileReader(HEADROOM).read_text(text, model) == read_unchanged(text, model)


@pytest.mark.parametrize(
    "change",
    [
        ('{model="resnet"', '{ model="resnet"'),
        ('{model="resnet"', '{zone="resnet",model="resnet"'),
        ('{model="resnet"', '{base_model="other",model="resnet"'),
        ('_waiting{model="resnet"', '_waiting{model="\x00"'),
        ('_waiting{model="resnet"', '_waiting{model= "resnet"'),
        ('_waiting{model="resnet"', '_waiting{model="other"'),
        ('{model="resnet"', '{model="another"'),
        (" 17", " NaN"),
        (" 17", " -1"),
    ],
)
def test_unusual_pages_are_read_or_rejected_the_same_way(
    change: tuple[str, str],
) -> None:
    text = page(model="resnet", served=17).replace(*change)
    try:
        expected: object = read_unchanged(text, "resnet")
    except TelemetryError as error:
        expected = str(error)
    try:
        found: object = ProfileReader(HEADROOM).read_text(text, "resnet")
    except TelemetryError as error:
        found = str(error)
    assert found == expected


def test_pages_of_a_thousand_models_cost_little_more_than_of_one() -> None:
    """A layout per model would exceed the cache: fifty times the cost."""
    reader = ProfileReader(HEADROOM)
    pages = [(f"m{one}", page(model=f"m{one}", served=one)) for one in range(1000)]
    reader.read_text(pages[0][1], "m0")

    def cost_s(of: list[tuple[str, str]]) -> float:
        begun_s = time.process_time()
        for model, text in of:
            reader.read_text(text, model)
        return time.process_time() - begun_s

    assert cost_s(pages) < 5.0 * min(cost_s(pages[:1] * 1000) for _ in range(2))
