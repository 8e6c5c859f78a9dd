"""Quantities in the notation of Kubernetes, and plausible amounts of bytes. Pure.

A number without a unit is bytes: `memory: "16"` is what someone writes who means 16Gi.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from headroom.api.values import VALIDATIONS

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

OF_BYTES = ("memory", "ephemeral-storage")
"""Resources that are counted in bytes."""
AT_LEAST_BYTES = 2**20
AT_LEAST = "must be 0 or at least 1Mi: a number without a unit means bytes"

_SHAPE = re.compile(
    r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][0-9]{1,2})?"
)
_MAX_LENGTH = 32
_FACTORS = {"": Decimal(1), "m": Decimal("0.001")} | {
    unit: Decimal(base) ** power
    for base, end in ((1000, ""), (1024, "i"))
    for power, unit in enumerate(
        (f"{letter}{end}" for letter in ("K" if end else "k", *"MGTPE")), start=1
    )
}
_MESSAGE = "must be a quantity of at least 0, such as 2, 500m or 4Gi"


def _quantity(value: object) -> int | str:
    match value:
        case bool():
            pass
        case int() if 0 <= value < 10**15:
            return value
        case str() if len(value) <= _MAX_LENGTH and _SHAPE.fullmatch(value):
            return value
    raise PydanticCustomError("quantity", _MESSAGE)


def amount_of(quantity: int | str) -> Decimal:
    """Return the number that a quantity stands for; raise ValueError where it is none."""
    shape = _SHAPE.fullmatch(str(quantity))
    if shape is None:
        raise ValueError(f"{_MESSAGE}; got {quantity!r:.60}")
    number, unit = shape[1], shape[2] or ""
    factor = _FACTORS.get(unit) or Decimal(10) ** int(unit[1:])
    return Decimal(number) * factor


def is_tiny(quantity: int | str) -> bool:
    """Return whether this few bytes are implausible; 0 requests none."""
    return 0 < amount_of(quantity) < AT_LEAST_BYTES


def tiny_in(amounts: Any) -> str:
    """Return the first resource of a container's limits or requests that is tiny; else empty.

    What is no mapping of quantities is left to the API server.
    """
    if not isinstance(amounts, Mapping):
        return ""
    for name in OF_BYTES:
        amount = amounts.get(name)
        if isinstance(amount, int | str) and _SHAPE.fullmatch(str(amount)) and is_tiny(amount):
            return name
    return ""


def _validation(amount: str, subject: str = "") -> dict[str, str]:
    """State in CEL that a value is 0 or at least 1Mi; `amount` is the text of the value.

    The message contains the value, because the API server shows none of a key of a map.
    """
    message = f"{subject} {AT_LEAST}".strip()
    number = f"{amount}.replace('m', '')"
    meant = f"{number} + 'Mi or ' + {number} + 'Gi?'"
    return {
        "rule": f"!isQuantity({amount}) || !quantity({amount}).isGreaterThan(quantity('0')) || "
        f"!quantity({amount}).isLessThan(quantity('1Mi'))",
        "message": message,
        "messageExpression": f"'{message}; got ' + {amount} + (!{amount}.matches('^[0-9.]+m?$') ? "
        f"'' : ', did you mean ' + {meant})",
    }


_GRAMMAR = {"rule": "type(self) == int || (isQuantity(self) && !self.startsWith('-'))"}
_SCHEMA: dict[str, Any] = {
    "x-kubernetes-int-or-string": True,
    "minimum": 0,
    "maximum": 10**15 - 1,
    "maxLength": _MAX_LENGTH,
    VALIDATIONS: [_GRAMMAR | {"message": _MESSAGE}],
}


def _bytes(value: object) -> int | str:
    found = _quantity(value)
    if is_tiny(found):
        raise PydanticCustomError("bytes", AT_LEAST)
    return found


Quantity = Annotated[int | str, PlainValidator(_quantity), WithJsonSchema(_SCHEMA)]
"""An amount of a resource in the notation of Kubernetes."""
Bytes = Annotated[
    int | str,
    PlainValidator(_bytes),
    WithJsonSchema(_SCHEMA | {VALIDATIONS: [*_SCHEMA[VALIDATIONS], _validation("string(self)")]}),
]
"""A number of bytes."""


@dataclass(frozen=True, slots=True)
class PlausibleBytes:
    """Limits or requests of a container, whose bytes are 0 or at least 1Mi."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Check the amounts that are counted in bytes."""

        def check(amounts: dict[str, Any]) -> dict[str, Any]:
            if name := tiny_in(amounts):
                raise PydanticCustomError("bytes", "{rule}", {"rule": f"{name} {AT_LEAST}"})
            return amounts

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """State the same in CEL."""
        rules = []
        for name in OF_BYTES:
            one = _validation(f"string(self['{name}'])", name)
            rules.append(one | {"rule": f"!('{name}' in self) || {one['rule']}"})
        return handler(schema) | {VALIDATIONS: rules}
