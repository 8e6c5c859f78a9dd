"""Draws bugs from a seed with Cosmic Ray, and prints them as JSON.

Cosmic Ray is not a dependency of the project: `uv run` installs it, and this file imports nothing
of the project. It draws a location in the code first and one of its mutations second, so that an
operator with eleven replacements counts no more than one with a single one.
"""

from __future__ import annotations

import ast
import json
import random
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast  # type: ignore[import-not-found]
from cosmic_ray.mutating import mutate_code  # type: ignore[import-not-found]
from cosmic_ray.plugins import get_operator, operator_names  # type: ignore[import-not-found]

Place = tuple[int, int]
CACHES = ("lru_cache", "cache")
SAME = ("_Eq_Is", "_NotEq_IsNot", "_Is_Eq", "_IsNot_NotEq")
"""Small numbers, enumerations and None are equal if identical, so these mutations are no bugs."""


def main(seed: int, number: int, paths: list[str]) -> list[dict[str, Any]]:
    """Return `number` bugs: path, line, operator, and the whole text of the broken module."""
    chance = random.Random(seed)
    places = [(path, *found) for path in paths for found in _places(Path(path).read_text())]
    places.sort(key=lambda one: (one[0], one[1]))
    bugs: list[dict[str, Any]] = []
    for path, (line, _), mutations in chance.sample(places, min(len(places), 2 * number)):
        operator, occurrence = chance.choice(mutations)
        text = Path(path).read_text()
        broken = mutate_code(text, get_operator(operator)(), occurrence)
        if broken is not None and broken != text and _runs(broken) and len(bugs) < number:
            bugs.append({"path": path, "line": line, "operator": operator, "text": broken})
    return bugs


def _runs(text: str) -> bool:
    """Return whether it is valid Python: a mutation turns a bare `*` among parameters into `//`."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "", "exec")
    except SyntaxError:
        return False
    return True


def _places(text: str) -> list[tuple[Place, list[tuple[str, int]]]]:
    """Return every location that can be mutated, with its operators and their occurrence."""
    tree, unseen = get_ast(text), _unseen(text)
    found: dict[Place, list[tuple[str, int]]] = defaultdict(list)
    for name in operator_names():
        if get_operator(name).arguments() or name.endswith(SAME):
            continue
        operator = get_operator(name)()
        spans = [span for node in ast_nodes(tree) for span in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(spans):
            if not any(first <= start <= last for first, last in unseen):
                found[start].append((name, occurrence))
    return sorted(found.items())


def _unseen(text: str) -> list[tuple[Place, Place]]:
    """Return the locations where a change has no effect.

    Annotations, which are not evaluated; caches; whether a dataclass is frozen or has slots.
    """
    spans = []
    for node in ast.walk(ast.parse(text)):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for one in getattr(node, "decorator_list", ()):
            if _is_cache(one):
                parts.append(one)
            elif isinstance(one, ast.Call) and _named(one.func) == "dataclass":
                parts += [option.value for option in one.keywords]
        for part in parts:
            if part is not None:
                end = (part.end_lineno or 0, part.end_col_offset or 0)
                spans.append(((part.lineno, max(0, part.col_offset - 1)), end))
    return spans


def _is_cache(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return _named(called) in CACHES


def _named(called: ast.expr) -> str:
    return called.id if isinstance(called, ast.Name) else ""


if __name__ == "__main__":
    json.dump(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]), sys.stdout)
