"""Lets a command take its options as frozen dataclasses; Typer sees one option per field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_type_hints

_Result = TypeVar("_Result")


def with_option_groups(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return the command with each parameter that is a dataclass replaced by its fields.

    A field is an option of its name: `port: Annotated[int, typer.Option(help="...")] = 8080`. Its
    module must import without the libraries that only running the command needs. Raises
    ValueError where two groups have a field of the same name.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def called(**given: Any) -> _Result:
        values = {
            name: group(**{one.name: given.pop(one.name) for one in fields(group)})
            for name, group in groups.items()
        }
        return command(**values, **given)

    parameters = [
        one
        for parameter in signature(command).parameters.values()
        for one in _options(parameter, hints[parameter.name])
    ]
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {}  # the signature says it
    return called


def _options(parameter: Parameter, hint: Any) -> Iterator[Parameter]:
    if not is_dataclass(hint):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hint)
        return
    hints = get_type_hints(hint, include_extras=True)
    for field in fields(hint):
        yield Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,  # an option without a default may follow one with a default
            default=_default(field),
            annotation=hints[field.name],
        )


def _default(field: Field[Any]) -> Any:
    return Parameter.empty if field.default is MISSING else field.default
