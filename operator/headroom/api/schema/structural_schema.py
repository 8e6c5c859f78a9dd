"""Converts the JSON Schema of values to the structural schema of Kubernetes.

Kubernetes reads an older dialect: no references, no `null` alternatives (an absent property is an
optional one), `exclusiveMinimum` as a flag next to `minimum`, and its own extension for free-form
objects. `kubectl explain` shows descriptions and no bounds, so descriptions end with the bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headroom.api.values import Value

PRESERVE = "x-kubernetes-preserve-unknown-fields"

_LIMITS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_RANGE = ("formatMinimum", "formatMaximum")
"""Bounds of a duration, which Kubernetes checks by a rule."""
_KEPT = frozenset(
    {
        "type", "default", "enum", "format", "pattern", "required",
        "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties",
    }
)  # fmt: skip


def structural_schema(value: type[Value]) -> dict[str, Any]:
    """Generate the schema of a value; raise ValueError where a keyword has no counterpart."""
    schema = value.model_json_schema(by_alias=True)
    return _structural(schema, schema.get("$defs", {}))


def _structural(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    schema = _resolved(schema, definitions)
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "description":
            out[key] = " ".join(value.split())
        elif key in _KEPT or key.startswith("x-kubernetes-"):
            out[key] = value
        elif key in _LIMITS:
            out |= {_LIMITS[key]: value, key: True}
        elif key == "items":
            out[key] = _structural(value, definitions)
        elif key == "properties":
            out[key] = {name: _structural(part, definitions) for name, part in value.items()}
        elif key == "additionalProperties":
            if value is True:
                out[PRESERVE] = True
            elif value:
                out[key] = _structural(value, definitions)
        elif key == "const":
            out["enum"] = [value]
        elif key not in {"title", "$defs", "propertyNames", *_RANGE}:
            raise ValueError(f"a structural schema has no counterpart of {key!r}: {value!r:.80}")
    if bounds := _bounds(schema):
        out["description"] = " ".join(filter(None, (out.get("description"), bounds)))
    return out


def _bounds(schema: dict[str, Any]) -> str:
    """Return the bounds of a number or a duration as a sentence; empty without any.

    Those of a quantity bound only its form as a number.
    """
    if schema.get("x-kubernetes-int-or-string"):
        return ""
    lowest, highest = (schema.get(key) for key in _RANGE)
    lowest, highest = schema.get("minimum", lowest), schema.get("maximum", highest)
    if lowest is not None and highest is not None:
        return f"From {lowest} to {highest}."
    words = {
        "Above": schema.get("exclusiveMinimum"),
        "At least": lowest,
        "Below": schema.get("exclusiveMaximum"),
        "At most": highest,
    }
    said = [f"{word} {bound}" for word, bound in words.items() if bound]  # a count is at least 0
    return f"{', '.join(said).capitalize()}." if said else ""


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Resolve references and the alternative to null; keywords next to them take precedence."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/")]
    elif "anyOf" in schema:
        alternatives = [part for part in schema["anyOf"] if part.get("type") != "null"]
        if len(alternatives) != 1:
            raise ValueError(f"a structural schema has no alternatives: {alternatives!r:.80}")
        target = alternatives[0]
    else:
        return schema
    siblings = {key: value for key, value in schema.items() if key not in {"$ref", "anyOf"}}
    return _resolved(target, definitions) | siblings
