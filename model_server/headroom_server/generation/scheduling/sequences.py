"""An accepted request while it is generated: its tokens, blocks and progress. Pure."""

from __future__ import annotations

import math
from enum import Enum, auto

from headroom_server.generation.scheduling.lookup import LookupIndex
from headroom_server.generation.values import GenerationRequest


class Phase(Enum):
    """Phase of an accepted request."""

    WAITING = auto()
    PREFILL = auto()
    DECODE = auto()
    ENDED = auto()


class LiveSequence:
    """One accepted request. Implements `SequenceView`; changed only by the scheduler's modules."""

    __slots__ = (
        "acceptance", "at_own_risk", "blocks", "cached_tokens", "charged", "computed", "digests",
        "first_token_s", "grown_tokens", "left", "long", "lookup", "phase", "place_s", "plain",
        "preemptions", "proposed", "request", "started_s", "tokens",
    )  # fmt: skip

    def __init__(self, request: GenerationRequest, place_s: float, *, long: bool = False) -> None:
        self.request = request
        self.at_own_risk = False
        """Accepted although it was predicted to be late: its miss says nothing about admission."""
        self.long = long
        """Whether its prompt gets only what long prompts may take of an iteration."""
        self.tokens: list[int] = list(request.prompt)
        self.phase = Phase.WAITING
        self.place_s = place_s
        """Position in the order of service: the smallest is first."""
        self.blocks: list[int] = []
        self.grown_tokens = 0
        """Tokens that the blocks have room for."""
        self.computed = 0
        """Positions whose keys and values are in the blocks."""
        self.cached_tokens = 0
        """Tokens of the prompt that the prefix cache supplied at the first start."""
        self.left = request.max_tokens
        """Tokens that may still be generated."""
        self.plain = request.grammar is None
        self.digests: list[bytes] = []
        """Names of the first full blocks, as far as they were needed."""
        self.charged = 0.0
        """Tokens of work charged to the tenant."""
        self.preemptions = 0
        self.started_s: float | None = None
        """Time when its prompt began to be computed, the first time."""
        self.first_token_s: float | None = None
        self.proposed: tuple[int, ...] = ()
        """Next tokens that a draft model proposed."""
        self.acceptance = 0.5
        """Estimated chance that a drafted token is the model's own."""
        self.lookup: LookupIndex | None = None
        """Prompt lookup's index; None until it is needed."""

    @property
    def key(self) -> int:
        """The request's key."""
        return self.request.key

    @property
    def generated(self) -> int:
        """Tokens generated so far."""
        return len(self.tokens) - len(self.request.prompt)

    @property
    def remaining(self) -> int:
        """Tokens to compute before the next one is sampled."""
        return len(self.tokens) - self.computed

    @property
    def protection(self) -> tuple[bool, int, float, float, int]:
        """Rank in memory: the greatest is preempted first.

        Each preemption counts as one level of priority, so that none is preempted indefinitely.
        """
        request = self.request
        deadline_s = math.inf if request.deadline_s is None else request.deadline_s
        level = request.priority - self.preemptions
        return request.batch_class, level, deadline_s, request.arrived_s, request.key
