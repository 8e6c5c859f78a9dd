"""Compiled constraints, and the grammar of each answer: within bounds on memory and work."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Collection
from hashlib import blake2b
from typing import Protocol
from weakref import finalize

from llguidance import LLTokenizer

from headroom_server.generation.text.constraint_compiler import compiled, tokenizer_of
from headroom_server.generation.text.constraint_memory import CompiledConstraint, ConstraintMemory
from headroom_server.generation.text.constraint_owner import UNNAMED, Owner
from headroom_server.generation.text.constraint_work import ConstraintWork, Work
from headroom_server.generation.token_grammar import TooComplexError

MOST_REFUSED = 4096
"""Constraints of which is remembered that they take long."""


class Trial(Protocol):
    """Tries a constraint where it can do no harm."""

    def cost_bytes(self, kind: str, text: str) -> int:
        """Return the memory that compiling takes.

        Raises:
            TooComplexError: compiling takes more than the trial allows.
            ValueError: the constraint is invalid.
        """


class _Lane:
    """A trial and its lock: one thread uses it at a time."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.lock = threading.Lock()


class _QuickTrial:
    """Remembers constraints that were too complex: many requests may have the same one."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._refused: OrderedDict[bytes, str] = OrderedDict()

    def cost_bytes(self, kind: str, text: str) -> int:
        name = blake2b(f"{kind} {text}".encode(), digest_size=16).digest()
        if name in self._refused:
            raise TooComplexError(self._refused[name])
        try:
            return self._trial.cost_bytes(kind, text)
        except TooComplexError as error:
            self._refused[name] = str(error)
            if len(self._refused) > MOST_REFUSED:
                self._refused.popitem(last=False)
            raise


class GuidanceGrammar:
    """One answer's grammar; see `TokenGrammar`. One that takes too much work allows no token."""

    def __init__(self, of: CompiledConstraint, work: ConstraintWork) -> None:
        self._of = of  # counts as in use
        self._matcher = of.matcher.deep_copy()
        self._work = work.begun()
        finalize(self, self._work.close).atexit = False

    def allowed(self) -> memoryview:
        """Return the mask of the next token."""
        with _Timed(self._work):
            return memoryview(self._matcher.compute_bitmask())

    def accept(self, token: int) -> bool:
        """Advance by one token."""
        with _Timed(self._work):
            accepted = bool(self._matcher.consume_token(token))
        if self._matcher.is_error():
            self._of.exhausted = True
            return False
        return accepted and self._work.step()

    @property
    def finished(self) -> bool:
        """Whether nothing but the end may follow."""
        return bool(self._matcher.is_stopped())


class _Timed:
    """Counts the processor time of its block, without that of other threads."""

    __slots__ = ("_begun_s", "_work")

    def __init__(self, work: Work) -> None:
        self._work = work

    def __enter__(self) -> None:
        self._begun_s = time.thread_time()

    def __exit__(self, *_: object) -> None:
        self._work.spend(time.thread_time() - self._begun_s)


class GuidanceGrammars:
    """Compiles constraints for one tokenizer; safe for threads.

    `quick` allows what ordinary constraints take, `slow` the most that any may take.
    """

    def __init__(
        self, tokenizer_json: str, eos_tokens: Collection[int], *, quick: Trial, slow: Trial
    ) -> None:
        self._json = tokenizer_json
        self._eos = frozenset(eos_tokens)
        self._quick, self._slow = _Lane(_QuickTrial(quick)), _Lane(slow)
        self._tokenizer: LLTokenizer | None = None
        self._memory = ConstraintMemory()
        self._lock = threading.Lock()
        """Protects what is compiled; held for microseconds."""
        self._work = ConstraintWork()

    def known(self, kind: str, text: str) -> GuidanceGrammar | None:
        """Return a new grammar if the constraint is compiled, without waiting for another one."""
        with self._lock:
            found = self._memory.find((kind, text))
        return None if found is None else GuidanceGrammar(found, self._work)

    def compile(
        self, kind: str, text: str, *, quick: bool = False, owner: Owner = UNNAMED
    ) -> GuidanceGrammar:
        """Return a new grammar, whose memory is its owner's.

        Raises:
            TooComplexError: compiling takes too much, if `quick` more than ordinary constraints.
            ValueError: the constraint is invalid.
            QueueFullError: those in use take too much memory.
        """
        lane = self._quick if quick else self._slow
        with lane.lock:
            return self.known(kind, text) or GuidanceGrammar(
                self._new(kind, text, lane.trial, owner), self._work
            )

    @property
    def in_use_bytes(self) -> int:
        """Memory of all different constraints."""
        return self._memory.bytes

    def _new(self, kind: str, text: str, trial: Trial, owner: Owner) -> CompiledConstraint:
        cost_bytes = trial.cost_bytes(kind, text)
        with self._lock:
            self._memory.reserve(owner, cost_bytes)
        try:
            if self._tokenizer is None:
                self._tokenizer = tokenizer_of(self._json, self._eos)
            made = CompiledConstraint(compiled(self._tokenizer, kind, text), cost_bytes, owner)
        finally:
            with self._lock:
                self._memory.release(owner, cost_bytes)
        with self._lock:
            self._memory.add((kind, text), made)
        return made
