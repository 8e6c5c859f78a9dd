"""Serves the web console, and tries again while its port is taken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headroom.cli.run_options.console import ConsoleChoice
    from headroom.console.access import Guard, Reviewer
    from headroom.console.read_model import ReadModel

RETRY_AFTER_S = 30.0

_log = logging.getLogger(__name__)


async def serve_console(
    choice: ConsoleChoice | None,
    model: ReadModel,
    reviewer: Reviewer,
    now_s: Callable[[], float],
    retry_after_s: float = RETRY_AFTER_S,
) -> None:
    """Serve the console until cancelled; without a console, only wait.

    While the port is taken, the error is logged once: scaling does not depend on the console.
    """
    if choice is None:
        await asyncio.Event().wait()
        return
    from headroom.console.web import console  # noqa: PLC0415  (not loaded without a console)
    from headroom.ops.server import serve  # noqa: PLC0415

    logged = ""
    while True:
        try:
            app = console(model, _guard(choice, reviewer, now_s), now_s)
            await serve(app, choice.port, choice.address)
        except OSError as error:
            if str(error) != logged:
                logged = str(error)
                _log.warning("no console, next attempt in %g s: %s", retry_after_s, logged)
        await asyncio.sleep(retry_after_s)


def _guard(choice: ConsoleChoice, reviewer: Reviewer, now_s: Callable[[], float]) -> Guard:
    from headroom.console.access import LoopbackOnly, TokenReviewed  # noqa: PLC0415

    return LoopbackOnly() if choice.is_loopback else TokenReviewed(reviewer, now_s)
