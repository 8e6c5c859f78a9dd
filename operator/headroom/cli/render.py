"""InferenceServices in a file → the children that they get. Pure, save for reading YAML."""

from __future__ import annotations

from typing import Any

import yaml

from headroom.api import InferenceService
from headroom.api.kind import KIND
from headroom.resources import desired_children

_NO_UID = "00000000-0000-0000-0000-000000000000"
"""What has not been applied has no UID yet; the owner reference shows where it will stand."""


def rendered(text: str) -> str:
    """Render the children of every InferenceService in the text.

    Raises InvalidSpec, or ValueError where the text is no YAML or has no InferenceService.
    """
    try:
        documents = [document for document in yaml.safe_load_all(text) if document]
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error
    services = [one for one in documents if isinstance(one, dict) and one.get("kind") == KIND]
    if not services:
        raise ValueError(f"no document of kind {KIND}")
    children = [child for one in services for child in desired_children(_parse(one))]
    return yaml.safe_dump_all(children, sort_keys=False)


def _parse(document: dict[str, Any]) -> InferenceService:
    metadata = document.get("metadata")
    if isinstance(metadata, dict):
        metadata = {"namespace": "default", "uid": _NO_UID} | metadata
    return InferenceService.parse(document | {"metadata": metadata})
