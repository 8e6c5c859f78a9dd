"""`headroom render`: the objects that an InferenceService gets, without a cluster."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headroom.cli.exit_codes import fail

if TYPE_CHECKING:
    from headroom.api import InferenceService

_NO_UID = "00000000-0000-0000-0000-000000000000"
"""Placeholder in owner references: only the API server assigns a UID."""


def render(
    file: Annotated[Path, typer.Argument(help="YAML file; - reads standard input.")],
) -> None:
    """Print the objects that an InferenceService gets, as YAML. Nothing is sent to a cluster.

    Exits with 1 for a field that the resource does not have (the operator ignores it), and for an
    InferenceService with targetRef, for which Headroom creates no objects.
    """
    from headroom.api import InvalidSpec

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        typer.echo(rendered(text), nl=False)
    except UnicodeDecodeError:
        fail(f"{file}: not a text file; give YAML with an InferenceService")
    except OSError as error:
        fail(f"{file}: {error.strerror}; give a YAML file, or - for standard input")
    except (InvalidSpec, ValueError) as error:
        fail(f"{file}: {error}")


def rendered(text: str) -> str:
    """Return the children of every InferenceService in the text.

    Raises InvalidSpec, or ValueError where the text is not YAML or nothing is created for it.
    """
    import yaml

    from headroom.api.kind import KIND
    from headroom.cli.commands.yaml_documents import documents
    from headroom.resources import desired_children

    found = documents(text)
    manifests = [one for one in found if isinstance(one, dict) and one.get("kind") == KIND]
    if not manifests:
        kinds = [str(one["kind"]) for one in found if isinstance(one, dict) and "kind" in one]
        others = ", ".join(kinds) or "none"
        raise ValueError(f"there must be a document of kind {KIND}; got {others}")
    services = [_parse(one) for one in manifests]
    children = [child for one in services for child in desired_children(one)]
    if not children:
        names = ", ".join(one.name for one in services)
        raise ValueError(
            f"nothing is rendered for {names}: spec.targetRef names a workload that exists, and "
            "Headroom only scales it (in Gateway mode the running operator adds a Service for "
            "clients); leave out spec.targetRef to have a Deployment created"
        )
    return yaml.safe_dump_all(children, sort_keys=False)


def _parse(document: dict[str, Any]) -> InferenceService:
    from headroom.api import InferenceService
    from headroom.api.kind import API_VERSION
    from headroom.api.schema.unknown_fields import unknown_fields

    version = document.get("apiVersion")
    if version != API_VERSION:
        raise ValueError(f"apiVersion must be {API_VERSION}; got {version or 'nothing'}")
    if unknown := unknown_fields(document):
        raise ValueError("; ".join(unknown))
    metadata = document.get("metadata")
    if isinstance(metadata, dict):
        metadata = {"namespace": "default", "uid": _NO_UID} | metadata
    return InferenceService.parse(document | {"metadata": metadata})
