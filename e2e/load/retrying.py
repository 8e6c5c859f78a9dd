"""Clients that give up waiting and try again: patience, a bounded number of retries, backoff.

Every try carries the number of tries before it in `x-stainless-retry-count`, as the SDKs of OpenAI,
Anthropic and others send it: a server can tell first tries, which are the demand, from the rest.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace
from typing import Protocol

from load.outcomes import Ending, FirstTry, Outcome

SETTLED = frozenset({Outcome.OK, Outcome.WRONG})
"""A client that got an answer does not ask again."""
JITTER = 0.25
"""A pause is up to this share shorter than its backoff, so that clients do not return at once."""
LONGEST_PAUSE_S = 8.0


class Sender(Protocol):
    """Sends single tries."""

    @property
    def connections(self) -> int:
        """Connections opened so far."""

    async def attempt(self, number: int, earlier: int) -> Ending:
        """Send request `number`, which was tried `earlier` times before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Retries of a client for a request that was not answered."""

    most: int = 0
    """Tries after the first."""
    backoff_s: float = 0.0
    """Pause before the second try, doubled before each further one, at most 8 s."""
    patience_s: float | None = None
    """Most time of a try, its wait for a connection included; None: unbounded."""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: the message names the rule and the value.
        """
        if self.most < 0:
            raise ValueError(f"retries must be 0 or more; got {self.most}")
        if not self.backoff_s >= 0.0:
            raise ValueError(f"backoff must be 0 s or more; got {self.backoff_s:g}")
        if self.patience_s is not None and not self.patience_s > 0.0:
            raise ValueError(f"patience must be above 0 s; got {self.patience_s:g}")

    def pause_s(self, tries: int, chance: random.Random) -> float:
        """Return the pause after this many tries."""
        whole_s = min(LONGEST_PAUSE_S, self.backoff_s * 2.0 ** (tries - 1))
        return whole_s * (1.0 - JITTER * chance.random())


class Retrying:
    """Asks through a sender until there is an answer or no retry is left."""

    def __init__(self, sender: Sender, retries: Retries, *, seed: int = 1) -> None:
        self._sender, self._retries = sender, retries
        self._chance = random.Random(seed)

    @property
    def connections(self) -> int:
        """Connections opened so far."""
        return self._sender.connections

    async def ask(self, number: int) -> Ending:
        """Send request `number` to its end, and tell how its first try ended."""
        clock = asyncio.get_running_loop().time
        began_s = clock()
        ending = await self._try(number, 0)
        first = FirstTry(ending.outcome, clock() - began_s)
        tries, sent_again = 1, ending.retried
        while ending.outcome not in SETTLED and tries <= self._retries.most:
            await asyncio.sleep(self._retries.pause_s(tries, self._chance))
            ending = await self._try(number, tries)
            tries, sent_again = tries + 1, sent_again or ending.retried
        return replace(ending, tries=tries, first=first, retried=sent_again)

    async def _try(self, number: int, earlier: int) -> Ending:
        patience_s = self._retries.patience_s
        try:
            async with asyncio.timeout(patience_s):
                return await self._sender.attempt(number, earlier)
        except TimeoutError:
            return Ending(Outcome.LOST, f"no answer within the patience of {patience_s:g} s")
