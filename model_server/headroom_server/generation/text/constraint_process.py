"""`python -m headroom_server.generation.text.constraint_process`: tries constraints.

A process of its own, whose children each compile one constraint within bounds on time, memory and
stack. The library that compiles is native: a chain of 3000 `$ref` overflows its stack, which ends
the process, and 20 patterns that must all match take 230 MB.

The first line on stdin is the tokenizer and the bounds, each further one a constraint; the answer
to each is a line on stdout: the bytes that it took (null: more than its bounds), and why it failed.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

import orjson
from llguidance import LLTokenizer

from headroom_server.generation.text.constraint_compiler import compiled, tokenizer_of
from headroom_server.generation.text.constraint_trial import TrialBounds

MOST_S = 120
"""Bound of the elapsed time: a machine may be busy with other work."""
STACK_BYTES = 4 << 20
"""Half of what the server's threads have: what passes here passes there."""
UNREADABLE = "one, but for this model's tokenizer none can be compiled"


def main() -> int:
    """Answer until stdin ends."""
    first = sys.stdin.buffer.readline()
    if not first:
        return 0
    tokenizer_json, eos_tokens, *bounds = orjson.loads(first)
    most = TrialBounds(*bounds)
    os.nice(most.niceness)
    try:
        tokenizer = tokenizer_of(tokenizer_json, eos_tokens)
    except ValueError as error:  # in every attempt: another process would not help
        sys.stderr.write(f"constraints cannot be compiled for the tokenizer: {error!s:.200}\n")
        for _ in sys.stdin.buffer:
            _answer(0, UNREADABLE)
        return 0
    # what the library builds once for a tokenizer is no constraint's
    compiled(tokenizer, "regex", "a").compute_bitmask()
    usual, _ = _tried(tokenizer, most, "regex", "a")
    for line in sys.stdin.buffer:
        spent, failure = _tried(tokenizer, most, *orjson.loads(line))
        _answer(None if spent is None else max(0, spent - (usual or 0)), failure)
    return 0


def _answer(spent: int | None, failure: str) -> None:
    sys.stdout.buffer.write(orjson.dumps([spent, failure]) + b"\n")
    sys.stdout.buffer.flush()


def _tried(
    tokenizer: LLTokenizer, most: TrialBounds, kind: str, text: str
) -> tuple[int | None, str]:
    """Return the bytes that a constraint took, and why it failed, from a child process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            _within_bounds(most)
            os.write(writer, orjson.dumps(_spent(tokenizer, kind, text)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        reply = pipe.read()
    os.waitpid(child, 0)
    spent, failure = orjson.loads(reply) if reply else (None, "")
    return spent, failure


def _within_bounds(most: TrialBounds) -> None:
    """Set the bounds of this process."""
    for what, bound in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, _status("VmSize") + most.memory_bytes),
        (resource.RLIMIT_STACK, STACK_BYTES),
    ):
        resource.setrlimit(what, (bound, bound))
    # ends the process, also in native code; a bound on the resource would count in whole seconds
    signal.setitimer(signal.ITIMER_PROF, most.cpu_s)
    signal.alarm(MOST_S)
    # a native library that crashes would write to the server's log
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _spent(tokenizer: LLTokenizer, kind: str, text: str) -> tuple[int, str]:
    before = _status("VmRSS")
    try:
        matcher = compiled(tokenizer, kind, text)
        matcher.compute_bitmask()
    except ValueError as error:
        return 0, str(error)
    return max(0, _status("VmHWM") - before), ""


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(f"/proc/self/status must have {name}")


if __name__ == "__main__":
    sys.exit(main())
