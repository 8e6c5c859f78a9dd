"""Fields of the Open Inference Protocol's JSON, checked by hand: a tensor may have megabytes. Pure.

All raise InvalidRequestError with the field, the rule and what was found.
"""

from __future__ import annotations

from typing import Any

import orjson

from headroom_server.errors import InvalidRequestError, NotJsonError
from headroom_server.json_values import kind

_NO_PARAMETERS: dict[str, Any] = {}


def loaded(text: bytes) -> object:
    """Return the value of a text."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise NotJsonError(f"the body is not JSON: {error}") from error
    return value


def object_of(value: object, where: str) -> dict[str, Any]:
    """Return a value that must be an object."""
    if type(value) is not dict:
        raise InvalidRequestError(f"{where} must be a JSON object; got {kind(value)}")
    return value


def objects_of(value: object, where: str) -> list[dict[str, Any]]:
    """Return a value that must be a list of objects."""
    if type(value) is not list:
        raise InvalidRequestError(f"{where} must be a list of objects; got {kind(value)}")
    for index, one in enumerate(value):
        if type(one) is not dict:
            raise InvalidRequestError(f"{where}.{index} must be a JSON object; got {kind(one)}")
    return value


def parameters_of(owner: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the parameters of a request, a tensor or an output; empty if it has none."""
    value = owner.get("parameters")
    return _NO_PARAMETERS if value is None else object_of(value, where)


def flag_of(options: dict[str, Any], name: str, where: str, *, default: bool) -> bool:
    """Return a parameter that must be true or false."""
    value = options.get(name, default)
    if type(value) is not bool:
        raise InvalidRequestError(f"{where}.{name} must be true or false; got {kind(value)}")
    return value
