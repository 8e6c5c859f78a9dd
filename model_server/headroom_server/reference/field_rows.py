"""The keys of `model.toml` and the settings, as rows of a table."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def meaning_of(field: FieldInfo) -> str:
    """Return a field's description on one line."""
    return " ".join((field.description or "").split())


def default_of(field: FieldInfo) -> str:
    """Return a field's default; nothing if it is empty."""
    if field.is_required():
        return "required"
    if field.default in (None, "", ()) or field.default_factory:
        return ""
    return f"`{field.default.value if isinstance(field.default, Enum) else field.default}`"


def key_rows(model: type[BaseModel], path: str) -> Iterator[tuple[str, str, str]]:
    """Yield the keys of a table and, below each, those of the tables inside it."""
    for name, field in model.model_fields.items():
        yield f"`{path}{name}`", _kind(field.annotation), default_of(field)
        for suffix, inner in _inner(field.annotation, name):
            yield from key_rows(inner, f"{path}{suffix}.")


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
