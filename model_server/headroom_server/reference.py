"""Generates the reference page: every setting, key of `model.toml` and metric."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from headroom_server.caching.cache import CacheCounts
from headroom_server.caching.feature_values import FeatureKind
from headroom_server.caching.features import FeatureCounts
from headroom_server.caching.flights import Source
from headroom_server.caching.generation_cache import GeneratedSource, GenerationCacheCounts
from headroom_server.caching.levels import LevelCounts
from headroom_server.generation.ports import EngineStatistics
from headroom_server.generation.values import GenerationLimits
from headroom_server.lifecycle import STARTUP
from headroom_server.repository import description
from headroom_server.repository.description import Description
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.settings import GROUPS, title
from headroom_server.settings.fields import Group
from headroom_server.settings_sources import flag, variable
from headroom_server.telemetry.accounting import Ledger
from headroom_server.telemetry.generation import GenerationLedger
from headroom_server.telemetry.generation_metrics import GenerationSnapshot
from headroom_server.telemetry.generation_metrics import render as render_generation
from headroom_server.telemetry.metrics import render
from headroom_server.telemetry.snapshots import DeviceStatus, Snapshot

_HEADER = """\
# Reference of the model server

Generated from the code by `make reference`; do not edit.
"""

_SETTINGS = """\
## Settings

A flag takes precedence over its variable, a variable over the key of the file, the file over the
default. Times are in seconds.
"""


def page() -> str:
    """Compose the page as Markdown."""
    return "\n".join(
        (
            _HEADER,
            _SETTINGS,
            *map(_settings, GROUPS),
            f"\n## Keys of `model.toml`\n\n```text\n{inspect.getdoc(description)}\n```\n",
            _table(("key", "type", "default"), _keys(Description, "")),
            "\n## Metrics\n\nSeries that are unknown or not in use are absent.\n",
            _table(("metric", "type", "meaning"), _metrics(render(_everything()))),
            "\n### Of generating models\n\nNext to the counts of requests and phases.\n",
            _table(("metric", "type", "meaning"), _generation_metrics()),
            "",
        )
    )


def _settings(group: type[Group]) -> str:
    rows = [
        (f"`{flag(key)}`", f"`{variable(key)}`", _default(field), _meaning(field))
        for key, field in group.model_fields.items()
    ]
    return f"### {title(group)}\n\n{_table(('flag', 'variable', 'default', 'meaning'), rows)}\n"


def _meaning(field: FieldInfo) -> str:
    return " ".join((field.description or "").split())


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default in (None, "", ()) or field.default_factory:
        return ""
    return f"`{field.default.value if isinstance(field.default, Enum) else field.default}`"


def _keys(model: type[BaseModel], path: str) -> Iterator[tuple[str, str, str]]:
    """Yield the keys of a table and, below each, those of the tables inside it."""
    for name, field in model.model_fields.items():
        yield f"`{path}{name}`", _kind(field.annotation), _default(field)
        for suffix, inner in _inner(field.annotation, name):
            yield from _keys(inner, f"{path}{suffix}.")


def _inner(annotation: Any, name: str) -> Iterator[tuple[str, type[BaseModel]]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield name, annotation
        return
    suffix = {tuple: f"{name}[]", Mapping: f"{name}.NAME"}.get(_container(annotation), name)
    for part in get_args(annotation):
        for _, inner in _inner(part, name):
            yield suffix, inner


def _container(annotation: Any) -> Any:
    origin = get_origin(annotation)
    return Mapping if isinstance(origin, type) and issubclass(origin, Mapping) else origin


def _kind(annotation: Any) -> str:
    arguments = [one for one in get_args(annotation) if one is not type(None)]
    origin = _container(annotation)
    if origin is Literal:
        return " or ".join(map(str, arguments))
    if origin in (Union, types.UnionType):
        return " or ".join(map(_kind, arguments))
    if origin is tuple:
        return f"list of {_kind(arguments[0])}"
    if origin is Mapping:
        return "table"
    if get_args(annotation):  # Annotated: the type comes first
        return _kind(arguments[0])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(str(one.value) for one in annotation)
    names = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
    return names.get(getattr(annotation, "__name__", ""), getattr(annotation, "__name__", "any"))


def _generation_metrics() -> Iterator[tuple[str, str, str]]:
    """Yield the series that only generating models have."""
    others = set(_metrics(render(_everything())))
    for row in _metrics(render_generation(_generating())):
        if row not in others:
            yield row


def _metrics(page: bytes) -> Iterator[tuple[str, str, str]]:
    """Read names, types and help of a page on which everything is known and in use."""
    meaning = ""
    for line in page.decode().splitlines():
        mark, _, rest = line.partition(" ")
        kind, _, rest = rest.partition(" ")
        name, _, value = rest.partition(" ")
        if (mark, kind) == ("#", "HELP"):
            meaning = value
        elif (mark, kind) == ("#", "TYPE"):
            yield f"`{name}`", value, meaning


def _generating() -> GenerationSnapshot:
    return GenerationSnapshot(
        model="model",
        engine="emulated",
        device="emulated",
        emulated=True,
        ledger=Ledger(),
        generation=GenerationLedger(),
        counts=EngineStatistics(cost_xx=(0.0,) * 15, cost_xy=(0.0,) * 5),
        in_flight=0,
        limits=GenerationLimits(1, 1, 1, 1, 1, 1),
        ready=True,
        draining=False,
        phase_s=dict.fromkeys(STARTUP, 0.0),
        cache=GenerationCacheCounts(dict.fromkeys(GeneratedSource, 0), _LEVELS, 0, 0),
        features=FeatureCounts(
            {(kind, source): 0 for kind in FeatureKind for source in Source}, _LEVELS
        ),
    )


_LEVELS = LevelCounts(0, 0, 0, 0, store_asked=True)


def _everything() -> Snapshot:
    return Snapshot(
        model="model",
        engine="emulated",
        device="emulated",
        emulated=True,
        ledger=Ledger(),
        waiting=0,
        oldest_waiting_s=0.0,
        delay_s=0.0,
        saturation=0.0,
        max_batch_size=1,
        cost=CostModel.from_warm_up([(1, 1.0)]),
        ready=True,
        draining=False,
        phase_s=dict.fromkeys(STARTUP, 0.0),
        budget_share=1.0,
        devices=(DeviceStatus(0.0, True), DeviceStatus(0.0, True)),
        cache=CacheCounts(dict.fromkeys(Source, 0), _LEVELS),
        features=CacheCounts(dict.fromkeys(Source, 0), _LEVELS),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
