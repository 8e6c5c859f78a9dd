"""Settings from flags, environment and a file, as one checked value. Pure.

A flag takes precedence over its variable, a variable over the file, the file over the default:

    --max-batch-size 16      HEADROOM_MAX_BATCH_SIZE=16      max_batch_size = 16

Unknown keys are errors in flags and file. An unknown HEADROOM_* variable is a warning, because
other sources set variables too: a Service named `headroom` sets HEADROOM_SERVICE_HOST.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from headroom_server.rule_words import rule_of
from headroom_server.settings import Settings

PREFIX = "HEADROOM_"
CONFIG = "config"
"""Path of the file: a flag and a variable, but no key of the file."""


class InvalidSettingsError(Exception):
    """The configuration is invalid; one line per key."""


class Layer(NamedTuple):
    """Values by key, and the name of a key in their source."""

    called: Callable[[str], str]
    values: Mapping[str, object]


def variable(key: str) -> str:
    """Return the environment variable of a key."""
    return PREFIX + key.upper()


def flag(key: str) -> str:
    """Return the flag of a key."""
    return "--" + key.replace("_", "-")


def from_flags(given: Mapping[str, object]) -> Layer:
    """Return the given flags by key."""
    return Layer(flag, {key: value for key, value in given.items() if key != CONFIG})


def from_environment(environment: Mapping[str, str]) -> Layer:
    """Return the known variables by key; their case is ignored."""
    by_upper_name = {name.upper(): value for name, value in environment.items()}
    known = {key: variable(key) for key in Settings.model_fields}
    return Layer(
        variable, {key: by_upper_name[name] for key, name in known.items() if name in by_upper_name}
    )


def from_file(data: bytes, name: str) -> Layer:
    """Return the keys of a TOML file.

    Raises:
        InvalidSettingsError: it is not valid TOML.
    """
    try:
        values = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidSettingsError(f"{name}: {error}") from error
    return Layer(lambda key: f"{name}: {key}", values)


def merged(layers: Sequence[Layer]) -> Settings:
    """Merge layers, given in order of precedence.

    Raises:
        InvalidSettingsError: with the name, rule and value of each wrong key.
    """
    values: dict[str, object] = {}
    called: dict[str, str] = {}
    for layer in reversed(layers):
        values |= layer.values
        called |= {key: layer.called(key) for key in layer.values}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        lines = [_line(problem, called) for problem in error.errors(include_url=False)]
        raise InvalidSettingsError("\n".join(lines)) from error


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the HEADROOM_* variables that are no settings, for example misspelled ones."""
    known = {variable(key) for key in (*Settings.model_fields, CONFIG)}
    return sorted(n for n in environment if n.upper().startswith(PREFIX) and n.upper() not in known)


def _line(problem: Any, called: Mapping[str, str]) -> str:
    rule = rule_of(problem)
    if not problem["loc"]:
        return rule
    key = called[str(problem["loc"][0])]
    if problem["type"] == "extra_forbidden":
        return (
            f"{key}: unknown setting; check the spelling. `headroom-server serve --help` lists all"
        )
    return f"{key}: {rule}; got {problem['input']!r:.200}"
