"""Structural schemas in tests: does an object fit one, and any object that does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from headroom.api.values import VALIDATIONS

Schema = dict[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}

FINITE = st.floats(allow_nan=False, allow_infinity=False)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
"""Anything that a body can hold."""


def parts(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Walk a schema with all that is below it."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from parts(inner, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from parts(schema[name], f"{path}[]")


def violations(schema: Schema, value: Any, path: str = "") -> Iterator[str]:
    """Say what the API server would refuse or prune; CEL rules and formats are not looked at."""
    if schema.get(INT_OR_STRING):
        types: tuple[type, ...] = (int, str)
    else:
        types = _TYPES[schema["type"]]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        yield f"{path}: {value!r} is not of type {schema.get('type', 'int or string')}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    elif isinstance(value, str):
        yield from _string(schema, value, path)
    elif isinstance(value, int | float):
        yield from _number(schema, value, path)
    elif isinstance(value, list):
        yield from _array(schema, value, path)
    elif isinstance(value, dict):
        yield from _object(schema, value, path)


def _string(schema: Schema, value: str, path: str) -> Iterator[str]:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield f"{path}: {len(value)} characters"
    if (form := form_of(schema)) is not None and not re.search(form, value):
        yield f"{path}: {value!r} does not match {form}"


def _number(schema: Schema, value: float, path: str) -> Iterator[str]:
    if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: {value} is out of bounds"


def _array(schema: Schema, value: list[Any], path: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{path}: {len(value)} items"
    for index, item in enumerate(value):
        yield from violations(schema["items"], item, f"{path}[{index}]")
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        keys = [item.get(key) for item in value if isinstance(item, dict)]
        if len(set(keys)) < len(keys):
            yield f"{path}: two entries of one {key}"


def _object(schema: Schema, value: dict[str, Any], path: str) -> Iterator[str]:
    if len(value) > schema.get("maxProperties", len(value)):
        yield f"{path}: {len(value)} properties"
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: is required"
    for name, inner in value.items():
        if name in schema.get("properties", {}):
            yield from violations(schema["properties"][name], inner, f"{path}.{name}")
        elif "additionalProperties" in schema:
            yield from violations(schema["additionalProperties"], inner, f"{path}.{name}")
        elif not schema.get(PRESERVE):
            yield f"{path}.{name}: is unknown"


def objects(schema: Schema) -> st.SearchStrategy[Any]:
    """Any value that fits the schema."""
    if schema.get(INT_OR_STRING):
        return st.integers(schema["minimum"], schema["maximum"]) | _texts(schema)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "string":
            return _texts(schema)
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
        case "number":
            return FINITE
        case "boolean":
            return st.booleans()
        case "array":
            return _arrays(schema)
        case _:
            return _dictionaries(schema)


def _texts(schema: Schema) -> st.SearchStrategy[Any]:
    longest = schema["maxLength"]
    form = form_of(schema)
    if form is None:
        return st.text(min_size=schema.get("minLength", 0), max_size=min(longest, 20))
    return st.from_regex(form, fullmatch=True).filter(lambda text: len(text) <= longest)


def form_of(schema: Schema) -> str | None:
    """Return the regular expression of a text's rule in CEL; None where it has none."""
    for rule in schema.get(VALIDATIONS, ()):
        if found := re.match(
            r"(?:type\(self\) == int \|\| )?self\.matches\(r?'([^']+)'\)", rule["rule"]
        ):
            return found[1]
    return None


def _arrays(schema: Schema) -> st.SearchStrategy[list[Any]]:
    keys = schema.get("x-kubernetes-list-map-keys")
    unique = (lambda item: tuple(item[key] for key in keys)) if keys else None
    least = schema.get("minItems", 0)
    return st.lists(objects(schema["items"]), min_size=least, max_size=3, unique_by=unique)


def _dictionaries(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    if "additionalProperties" in schema:
        return st.dictionaries(st.text(), objects(schema["additionalProperties"]), max_size=3)
    required = set(schema.get("required", ()))
    known = {name: objects(inner) for name, inner in schema.get("properties", {}).items()}
    described = st.fixed_dictionaries(
        {name: value for name, value in known.items() if name in required},
        optional={name: value for name, value in known.items() if name not in required},
    )
    if not schema.get(PRESERVE):
        return described
    others = st.dictionaries(st.text().filter(lambda name: name not in known), JSON, max_size=2)
    return st.builds(lambda more, these: more | these, others, described)
