"""Errors of options, in the form of all other errors: "must be ...; got ..."."""

# ruff: noqa: PLC0415  (help is shown without the libraries that commands need)

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperGroup

_NOT_ONE_OF = re.compile(r"^.* is not one of (.*?)\.?$", re.DOTALL)


class PlainUsage(TyperGroup):
    """The commands; Typer checks values with pydantic, whose words are translated here."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run a command; raise BadParameter with the rule and the value."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _said(error)
            raise


def _said(error: typer.BadParameter) -> str:
    """Return the rule and the value; the message itself where no library checked the value."""
    from pydantic import ValidationError

    from headroom.api.rule_words import rule_of

    checked = error.__cause__
    if not isinstance(checked, ValidationError):
        return error.message
    detail = checked.errors(include_url=False)[0]
    rule = _NOT_ONE_OF.sub(r"must be one of \1", rule_of(detail))
    return f"{rule}; got {detail['input']!r:.60}"
