"""The option for the log level of long-running commands."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Annotated

import typer


class LogLevel(StrEnum):
    """The least severe messages that are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """Return the level as the logging module counts it."""
        return logging.getLevelNamesMapping()[self.name]


LogLevelOption = Annotated[
    LogLevel,
    typer.Option(envvar="HEADROOM_LOG_LEVEL", help="The least severe messages to log."),
]
