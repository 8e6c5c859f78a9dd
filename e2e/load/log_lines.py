"""Lines of a load generator in a log that other programs write too."""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any


def body_of(line: str, kinds: Container[str]) -> dict[str, Any] | None:
    """Return the object of a line whose `kind` is one of these; None for any other line."""
    try:
        body = json.loads(line)
    except ValueError:
        return None
    return body if isinstance(body, dict) and body.get("kind") in kinds else None
