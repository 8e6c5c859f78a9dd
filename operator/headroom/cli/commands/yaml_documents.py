"""Reads YAML documents whose aliases stand for a bounded number of nodes. Pure.

An alias repeats what its anchor names: eight lines that each repeat the one before nine times are
600 bytes and 43 million nodes.
"""

from __future__ import annotations

from typing import Any

import yaml

MOST_NODES = 100_000


class _Loader(yaml.SafeLoader):
    """Counts before it constructs: merge keys (`<<`) repeat nodes meanwhile."""

    def compose_document(self) -> yaml.Node | None:
        node: yaml.Node | None = super().compose_document()
        if node is not None and _nodes(node, {}) > MOST_NODES:
            raise yaml.YAMLError(f"more than {MOST_NODES} values with its aliases written out")
        return node


def documents(text: str) -> list[Any]:
    """Return the documents; raise ValueError where the text is not YAML, or too much of it."""
    try:
        return [one for one in yaml.load_all(text, Loader=_Loader) if one]
    except yaml.YAMLError as error:
        raise ValueError(f"must be YAML; got {_place(error)}") from error
    except RecursionError as error:
        raise ValueError("must be YAML; got a text that is nested too deeply") from error


def _place(error: yaml.YAMLError) -> str:
    """Return line, column and cause, without the excerpt, which needs several lines."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error)
    problem = getattr(error, "problem", None)
    return f"an error in line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _nodes(node: yaml.Node, counted: dict[int, int]) -> int:
    """Return the number of nodes with all aliases written out; of a cycle, more than the most."""
    found = counted.get(id(node))
    if found is None:
        counted[id(node)] = MOST_NODES + 1  # until it is counted: it may contain itself
        inner: list[Any] = node.value if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.MappingNode):
            inner = [one for pair in inner for one in pair]
        found = counted[id(node)] = 1 + sum(_nodes(one, counted) for one in inner)
    return found
