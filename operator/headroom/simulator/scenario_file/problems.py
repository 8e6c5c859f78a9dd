"""Errors of a scenario file: the broken rule, its line and the value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

from headroom.api.invalid_spec import shown
from headroom.api.rule_words import rule_of
from headroom.printable import printable
from headroom.simulator.arrivals.recorded_trace import TraceError
from headroom.simulator.scenario_file.arrivals_tables import TAG
from headroom.simulator.scenario_file.table import Table
from headroom.simulator.scenario_file.toml_lines import Path, line_of

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MOST_SHOWN = 20

_RULES = {
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "list_type": "must be an array",
    "too_short": "must have at least one entry",
}


class ScenarioError(ValueError):
    """An invalid scenario file: one line per problem, with file, line, rule and value."""


class Problem(Exception):  # noqa: N818  (a part of ScenarioError)
    """One broken rule, and the key or table that breaks it."""

    def __init__(self, path: Path, message: str) -> None:
        self.path = path
        parts = (f"[{part}]" if isinstance(part, int) else f".{printable(part)}" for part in path)
        super().__init__(f"{''.join(parts).removeprefix('.') or 'the file'}: {message}")


def refusal(problems: Iterable[Problem], text: str, source: str) -> ScenarioError:
    """Return the error of these problems in a text, by line."""
    lines = sorted({(line_of(text, problem.path), str(problem)) for problem in problems})
    shown_lines = [f"{source}, line {line}: {message}" for line, message in lines[:MOST_SHOWN]]
    if len(lines) > MOST_SHOWN:
        shown_lines.append(f"{source}: {len(lines) - MOST_SHOWN} more")
    return ScenarioError("\n".join(shown_lines))


def found_by_pydantic(error: ValidationError) -> list[Problem]:
    """Translate pydantic's errors into problems of the file."""
    return [_translated(detail) for detail in error.errors(include_url=False)]


def _translated(detail: ErrorDetails) -> Problem:
    path = tuple(part for part in detail["loc"] if not str(part).startswith(TAG))
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        return Problem(path, "is required")
    got = context.get("got", shown(detail["input"]))
    if kind == "unknown_key":
        key = context["key"]
        close = get_close_matches(key, context["known"], n=1)
        path, got = (*path, key), f"{key!r:.80}" + (f": did you mean {close[0]}?" if close else "")
    return Problem(path, f"{_RULES.get(kind) or rule_of(detail)}; got {got}")


@contextmanager
def placed(*path: str | int, table: Table | None = None) -> Iterator[None]:
    """Turn a ValueError into a Problem, at the first key of the table that its rule names.

    "cv must be >= 0 and <= 10; got 11" is a problem of `cv`, "duration_s must be > 0" of
    `duration`, and an error within a trace of `trace`. A rule that names no key is the table's.
    """
    try:
        yield
    except ValueError as error:
        known = table.model_fields_set if table is not None else set()
        if isinstance(error, TraceError):
            named = [key for key in ("trace", "recording") if key in known]
        else:
            words = re.findall(r"\w+", str(error).split("; got")[0])
            named = [word.removesuffix("_s") for word in words if word.removesuffix("_s") in known]
        raise Problem((*path, *named[:1]), str(error)) from error
