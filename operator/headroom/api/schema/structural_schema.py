"""Converts the JSON Schema of values to the structural schema of Kubernetes.

Kubernetes reads an older dialect: no references, no `null` alternatives (an absent property is an
optional one), `exclusiveMinimum` as a flag next to `minimum`, and its own extension for free-form
objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headroom.api.values import Value

PRESERVE = "x-kubernetes-preserve-unknown-fields"

_LIMITS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
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
        elif key not in {"title", "$defs", "propertyNames"}:
            raise ValueError(f"a structural schema has no counterpart of {key!r}: {value!r:.80}")
    return out


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
