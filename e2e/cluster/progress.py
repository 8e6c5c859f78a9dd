"""Shows long steps to the user who waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from rich.console import Console
from rich.markup import escape


class Progress(Protocol):
    """Receives each step when it starts, and notes for the user."""

    def step(self, title: str) -> AbstractContextManager[None]:
        """Cover one step with this."""

    def note(self, text: str) -> None:
        """Say something that stays on the screen."""


class Silent:
    """Shows nothing."""

    def step(self, title: str) -> AbstractContextManager[None]:
        """Cover one step with this."""
        return nullcontext()

    def note(self, text: str) -> None:
        """Say nothing."""


class OnConsole:
    """A spinner while a step runs, and a line with its duration when it is done."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Cover one step with this."""
        began = time.monotonic()
        try:
            with self._console.status(escape(title)):
                yield
        except BaseException:
            self._say(f"[red]✗[/red] {escape(title)}")
            raise
        took_s = time.monotonic() - began
        self._say(f"[green]✓[/green] {escape(title)} [dim]{took_s:.1f} s[/dim]")

    def note(self, text: str) -> None:
        """Say something that stays on the screen."""
        self._say(f"  {escape(text)}")

    def _say(self, marked_up: str) -> None:
        self._console.print(marked_up, soft_wrap=True)
