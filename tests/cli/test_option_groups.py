"""A command that takes frozen dataclasses has an option for each of their fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from headroom.cli.option_groups import with_option_groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    address: Annotated[str, typer.Option(help="Where it listens.")] = "127.0.0.1"
    port: Annotated[int, typer.Option("--listen-port", min=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondListener:
    port: Annotated[int, typer.Option()] = 1


def serve(
    name: Annotated[str, typer.Argument()],
    listener: Listener,
    verbose: Annotated[bool, typer.Option("--verbose")] = False,
) -> None:
    typer.echo(f"{name} {listener} {verbose}")


@pytest.fixture
def app() -> typer.Typer:
    found = typer.Typer(pretty_exceptions_enable=False)
    found.command()(with_option_groups(serve))
    return found


def test_group_of_options_is_given_as_one_value(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["demo", "--listen-port", "80"])
    assert result.output == "demo Listener(address='127.0.0.1', port=80) False\n"


def test_option_of_group_is_checked_and_required_like_any_other(app: typer.Typer) -> None:
    for given in (["demo"], ["demo", "--listen-port", "0"]):
        result = CliRunner().invoke(app, given)
        assert result.exit_code == 2
        assert "--listen-port" in result.output


def test_same_option_in_two_groups_fails() -> None:
    def twice(one: Listener, other: SecondListener) -> None:
        del one, other

    with pytest.raises(ValueError, match="duplicate parameter name: 'port'"):
        with_option_groups(twice)
