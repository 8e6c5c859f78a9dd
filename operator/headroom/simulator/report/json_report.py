"""Outcomes as JSON and back. The keys are stable; the same outcomes give the same bytes.

    format     "headroom.simulation/3"; a change of meaning changes the number
    summaries  one object per scenario, service and autoscaler over its seeds: scenario, service,
               autoscaler, target_s, percentile, seeds, on_front, and {mean, half_width} of each
               figure (half_width: 95 % interval of the mean, null with one seed)
    outcomes   one object per run: scenario, service, autoscaler, seed, target_s, percentile,
               score (the fields of Score, and attainment), timeline (one array per field of
               Timeline, all of one length), moves [{time_s, before, after, reason, message}]

Every number is finite: infinity is the string "inf" (an unanswered request), an unknown
value is null. Summaries are computed from the outcomes and not read back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headroom.simulator.outcome import Move, Outcome, Score, Series, Timeline
from headroom.simulator.report.comparison import Estimate
from headroom.simulator.report.summary import Summary, summarized

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")

FORMAT = "headroom.simulation/3"
_INFINITE = "inf"


class InvalidReport(ValueError):  # noqa: N818  (named as InvalidSpec)
    """The text is not a report of this format; the message says where and what is expected."""


def written(outcomes: Sequence[Outcome]) -> str:
    """Render the outcomes, in order, as one JSON document with a line for each."""
    summaries = ",\n".join(_dumped(_plain(each)) for each in summarized(outcomes))
    runs = ",\n".join(_dumped(_outcome(each)) for each in outcomes)
    return (
        f'{{"format": {_dumped(FORMAT)},\n"summaries": [\n{summaries}\n],\n'
        f'"outcomes": [\n{runs}\n]}}\n'
    )


def read(text: str) -> tuple[Outcome, ...]:
    """Return the outcomes of a document; raise InvalidReport."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidReport(f"not JSON: {error}") from error
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise InvalidReport(f"format must be {FORMAT!r}; got {_shown(found)}")
    return tuple(
        _parsed(Outcome, raw, where)
        for raw, where in _elements(document.get("outcomes"), "outcomes")
    )


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _outcome(outcome: Outcome) -> dict[str, Any]:
    plain = {field.name: _plain(getattr(outcome, field.name)) for field in fields(outcome)}
    plain["score"]["attainment"] = outcome.score.attainment
    return plain


def _plain(value: Any) -> Any:
    match value:
        case np.ndarray():
            # Whole numbers lose their ".0": half of a timeline is counts.
            return [
                int(each) if each.is_integer() else _plain(each)
                for each in value.astype(float).tolist()
            ]
        case np.generic():
            return _plain(value.item())
        case tuple():
            return [_plain(each) for each in value]
        case Score() | Timeline() | Move() | Summary() | Estimate():
            return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        case float() if math.isnan(value):
            return None
        case float() if math.isinf(value):
            return _INFINITE
    return value


def _parsed(kind: type[D], raw: object, where: str) -> D:
    """Parse an object by the fields of its dataclass; further keys are ignored."""
    if not isinstance(raw, dict):
        raise InvalidReport(f"{where} must be an object; got {_shown(raw)}")
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name not in raw:
            raise InvalidReport(f"{where} must have {field.name!r}")
        values[field.name] = _PARSERS[str(field.type)](raw[field.name], f"{where}.{field.name}")
    return kind(**values)


def _timeline(raw: object, where: str) -> Timeline:
    timeline = _parsed(Timeline, raw, where)
    lengths = {len(getattr(timeline, field.name)) for field in fields(timeline)}
    if len(lengths) > 1:
        raise InvalidReport(f"{where}: all arrays must have one length; got {sorted(lengths)}")
    return timeline


def _series(raw: object, where: str) -> Series:
    return np.array([_number(*element) for element in _elements(raw, where)], dtype=np.float64)


def _moves(raw: object, where: str) -> tuple[Move, ...]:
    return tuple(_parsed(Move, *element) for element in _elements(raw, where))


def _elements(raw: object, where: str) -> list[tuple[object, str]]:
    if not isinstance(raw, list):
        raise InvalidReport(f"{where} must be an array; got {_shown(raw)}")
    return [(each, f"{where}[{index}]") for index, each in enumerate(raw)]


def _number(raw: object, where: str) -> float:
    if raw is None:
        return math.nan
    if raw == _INFINITE:
        return math.inf
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise InvalidReport(f'{where} must be a number, null or "inf"; got {_shown(raw)}')
    return float(raw)


def _whole(raw: object, where: str) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise InvalidReport(f"{where} must be a whole number; got {_shown(raw)}")
    return raw


def _text(raw: object, where: str) -> str:
    if not isinstance(raw, str):
        raise InvalidReport(f"{where} must be a string; got {_shown(raw)}")
    return raw


def _shown(value: object) -> str:
    return repr(value)[:80]


_PARSERS: Mapping[str, Callable[[object, str], Any]] = {
    "int": _whole,
    "float": _number,
    "str": _text,
    "Series": _series,
    "Counts": lambda raw, where: _series(raw, where).astype(np.int64),
    "Score": lambda raw, where: _parsed(Score, raw, where),
    "Timeline": _timeline,
    "tuple[Move, ...]": _moves,
}
"""Parsers by a field's annotation."""
