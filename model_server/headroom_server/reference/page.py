"""Generates the reference page: every setting, key of `model.toml` and metric."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

from headroom_server.reference.field_rows import default_of, key_rows, meaning_of
from headroom_server.reference.metric_rows import generation_metric_rows, metric_rows
from headroom_server.repository import description
from headroom_server.repository.description import Description
from headroom_server.settings import GROUPS, title
from headroom_server.settings.fields import Group
from headroom_server.settings_sources import flag, variable

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
            f"\n## Keys of `model.toml`\n\n```text\n{_example()}\n```\n",
            _table(("key", "type", "default"), key_rows(Description, "")),
            "\n## Metrics\n\nSeries that are unknown or not in use are absent.\n",
            _table(("metric", "type", "meaning"), metric_rows()),
            "\n### Of generating models\n\nNext to the counts of requests and phases.\n",
            _table(("metric", "type", "meaning"), generation_metric_rows()),
            "",
        )
    )


def _example() -> str:
    """Return the description that shows every field."""
    return (inspect.getdoc(description) or "").replace(" Pure.\n", "\n", 1)


def _settings(group: type[Group]) -> str:
    rows = [
        (f"`{flag(key)}`", f"`{variable(key)}`", default_of(field), meaning_of(field))
        for key, field in group.model_fields.items()
    ]
    return f"### {title(group)}\n\n{_table(('flag', 'variable', 'default', 'meaning'), rows)}\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
