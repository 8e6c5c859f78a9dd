"""Compiles a constraint elsewhere first, so that it can neither end nor stop the server."""

from __future__ import annotations

import subprocess
import sys
import weakref
from collections.abc import Callable, Collection
from typing import NamedTuple

import orjson

from headroom_server.generation.token_grammar import TooComplexError

PROCESS = "headroom_server.generation.text.constraint_process"


class TrialBounds(NamedTuple):
    """Bounds on the compilation of one constraint."""

    cpu_s: float
    memory_bytes: int
    niceness: int
    """The niceness of its process: what takes long leaves the processor to everything else."""


QUICK = TrialBounds(cpu_s=0.05, memory_bytes=32 << 20, niceness=0)
"""A schema of 300 properties with a pattern each takes 0.02 s and 3.3 MB."""
SLOW = TrialBounds(cpu_s=2.0, memory_bytes=128 << 20, niceness=10)
TOO_COMPLEX = "a constraint that takes too much time or memory to compile"


class ConstraintTrial:
    """The process that tries; it starts with the first constraint. Not safe for threads."""

    def __init__(
        self, tokenizer_json: str, eos_tokens: Collection[int], bounds: TrialBounds = SLOW
    ) -> None:
        self._first = orjson.dumps([tokenizer_json, sorted(eos_tokens), *bounds])
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None

    def cost_bytes(self, kind: str, text: str) -> int:
        """Return the memory that compiling took.

        Raises:
            TooComplexError: it takes more than the bounds.
            ValueError: the constraint is invalid.
        """
        answer = self._asked(orjson.dumps([kind, text]))
        spent, failure = orjson.loads(answer) if answer else (0, "a process that ended; retry")
        if spent is None:
            raise TooComplexError(TOO_COMPLEX)
        if failure:
            raise ValueError(failure)
        return int(spent)

    def close(self) -> None:
        """End the process; the next constraint starts another one."""
        self._end()
        self._process = None

    def _asked(self, line: bytes) -> bytes:
        if self._process is None:
            words = [sys.executable, "-m", PROCESS]
            self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            # it ends with this object, or with this process
            self._end = weakref.finalize(self, self._process.communicate)
            self._write(self._process, self._first)
        self._write(self._process, line)
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            self.close()
        return answer

    @staticmethod
    def _write(process: subprocess.Popen[bytes], line: bytes) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
        except BrokenPipeError:  # the answer is missing too
            pass
