"""Options of `headroom run` for evaluations, probes and logs."""

# ruff: noqa: PLC0415  (help is shown without the libraries that the operator needs)

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from headroom.cli.log_level import LogLevel, LogLevelOption


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """Namespaces and period of evaluations, the port of the probes, and the log level."""

    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", help="Only this namespace; repeat it for several."),
    ] = None
    tick: Annotated[
        str, typer.Option(help="Time between two evaluations of a service, such as 2s.")
    ] = "2s"
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of /livez, /readyz and /metrics.")
    ] = 8080
    log_level: LogLevelOption = LogLevel.INFO

    def tick_s(self) -> float:
        """Return the tick in seconds; raise BadParameter outside of its bounds."""
        from headroom.api.durations import Duration

        try:
            seconds = Duration.parse(self.tick).seconds
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--tick") from None
        if not 0.2 <= seconds <= 60.0:
            rule = f"must be between 200ms and 1m; got {self.tick}"
            raise typer.BadParameter(rule, param_hint="--tick")
        return seconds
