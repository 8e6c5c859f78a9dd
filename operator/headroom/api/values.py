"""Building blocks of the resource: frozen values, rules across fields, bounds on durations.

A rule is written once, as CEL for the API server and as a predicate for the operator (an object
that was stored before a rule existed is not checked by the server until it is written). The schema
is generated from these values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, PydanticUndefined, core_schema, to_jsonable_python

from headroom.api.durations import PATTERN, UNITS, Duration

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

VALIDATIONS = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule across fields of a value, in both languages that check it."""

    cel: str
    """CEL expression that the API server evaluates; `self` is the value."""
    holds: Callable[[Any], bool]
    """The same rule on the parsed value."""
    message: str
    """The rule as text, naming the fields."""
    field: str = ""
    """The property that breaks the rule, relative to the value; empty for the whole value."""
    got: Callable[[Any], str] | None = None
    """Text of what was found instead, where the property alone does not show it."""
    got_cel: str = ""
    """The same as CEL. Without it the API server shows no value. It contains texts and no numbers:
    the API server estimates no bound for the length of a number as text, and rejects the schema."""

    def as_validation(self) -> dict[str, str]:
        """Render the entry of x-kubernetes-validations."""
        entry = {"rule": self.cel, "message": self.message}
        if self.got_cel:
            entry["messageExpression"] = f"'{self.message}; got ' + ({self.got_cel})"
        return entry | {"fieldPath": f".{self.field}"} if self.field else entry


class Value(BaseModel):
    """A frozen part of the resource: camelCase outside, snake_case inside, no coercion.

    Unknown properties are ignored: the schema prunes them, and an object stored under a newer
    schema must still parse.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: object) -> object:
        """Treat null in a described field as unset, as the API server does."""
        if not isinstance(value, Mapping):
            return value
        described = {field.alias or name for name, field in cls.model_fields.items()}
        return {k: v for k, v in value.items() if v is not None or k not in described}

    @model_validator(mode="after")
    def _rules_hold(self) -> Self:
        broken = [rule for rule in type(self).rules if not rule.holds(self)]
        if broken:
            found = [(rule, rule.got(self) if rule.got else None) for rule in broken]
            raise PydanticCustomError(
                "rules",
                "{rules}",
                {"rules": "; ".join(r.message for r in broken), "broken": found},
            )
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Carry the rules into the schema, and defaults as Kubernetes writes them."""
        generated = handler(schema)
        resolved = handler.resolve_ref_schema(generated)
        if cls.rules:
            resolved[VALIDATIONS] = [rule.as_validation() for rule in cls.rules]
        for name, field in cls.model_fields.items():
            described = resolved.get("properties", {}).get(field.alias or name, {})
            described.pop("default", None)
            if field.default not in (None, PydanticUndefined):
                described["default"] = _as_written(field.default)
        return generated

    def manifest(self) -> dict[str, Any]:
        """Render as Kubernetes writes it: camelCase, nothing that is unset."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


@dataclass(frozen=True, slots=True)
class MapBy:
    """List whose entries are keyed by one property, so that no two share its value."""

    key: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Reject two entries with the same key."""

        def check(entries: tuple[Any, ...]) -> tuple[Any, ...]:
            names = [getattr(entry, self.key) for entry in entries]
            twice = sorted({str(name) for name in names if names.count(name) > 1})
            if twice:
                raise PydanticCustomError(
                    "map_by",
                    "entries must differ in {key}; {twice} occurs more than once",
                    {"key": self.key, "twice": ", ".join(twice)},
                )
            return entries

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Make the API server check it too, and merge entries of different appliers."""
        return handler(schema) | {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": [self.key],
        }


def _as_written(value: object) -> Any:
    """Render a default; defaults computed from other fields (a factory) are left out."""
    if isinstance(value, Duration):
        return str(value)
    written = to_jsonable_python(value, by_alias=True, exclude_none=True)
    if isinstance(value, Value):
        for name, field in type(value).model_fields.items():
            if field.default_factory is not None:
                written.pop(field.alias or name, None)
    return written


@dataclass(frozen=True, slots=True)
class Within:
    """Bounds on a duration, both included."""

    lowest: str
    highest: str

    @property
    def message(self) -> str:
        """The rule as text."""
        return f"must be a duration from {self.lowest} to {self.highest}, with units ({UNITS})"

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Read the text and check the bounds: one rule, as in CEL."""
        lowest, highest = Duration.parse(self.lowest), Duration.parse(self.highest)

        def check(value: object, read: core_schema.ValidatorFunctionWrapHandler) -> Duration:
            try:
                found = read(value)
            except ValidationError:
                found = None
            if not isinstance(found, Duration) or not lowest <= found <= highest:
                raise PydanticCustomError("duration_bounds", "{rule}", {"rule": self.message})
            return found

        return core_schema.no_info_wrap_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """State grammar and bounds in CEL, which reads Go durations natively, and for readers."""
        cel = (
            f"self.matches(r'{PATTERN}') && duration(self) >= duration('{self.lowest}') && "
            f"duration(self) <= duration('{self.highest}')"
        )
        readable = {"formatMinimum": self.lowest, "formatMaximum": self.highest}
        return handler(schema) | readable | {VALIDATIONS: [{"rule": cel, "message": self.message}]}
