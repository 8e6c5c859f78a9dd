"""`python -m headroom_server.generation.text.constraint_process`: tries constraints.

A process of its own, whose children each compile one constraint within bounds on time, memory and
stack. The library that compiles is native: a chain of 3000 `$ref` overflows its stack, which ends
the process, and 20 patterns that must all match take 230 MB.

The first line on stdin is the tokenizer, each further one a constraint; the answer to each is a
line on stdout: the bytes that it took, or why it failed.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

import orjson
from llguidance import LLTokenizer

from headroom_server.generation.text.grammar import compiled, tokenizer_of

MOST_CPU_S = 2
MOST_S = 120
"""By the clock: a machine may be busy with other work."""
MOST_BYTES = 128 << 20
STACK_BYTES = 4 << 20
"""Half of what the server's threads have: what passes here passes there."""
TOO_COMPLEX = "a constraint that takes too much time or memory to compile"
UNREADABLE = "one, but for this model's tokenizer none can be compiled"


def main() -> int:
    """Answer until stdin ends."""
    first = sys.stdin.buffer.readline()
    if not first:
        return 0
    try:
        tokenizer = tokenizer_of(*orjson.loads(first))
    except ValueError as error:  # in every attempt: another process would not help
        sys.stderr.write(f"constraints cannot be compiled for the tokenizer: {error!s:.200}\n")
        for _ in sys.stdin.buffer:
            _answer(0, UNREADABLE)
        return 0
    # what the library builds once for a tokenizer is no constraint's
    compiled(tokenizer, "regex", "a").compute_bitmask()
    usual, _ = _tried(tokenizer, "regex", "a")
    for line in sys.stdin.buffer:
        spent, failure = _tried(tokenizer, *orjson.loads(line))
        _answer(max(0, spent - usual), failure)
    return 0


def _answer(spent: int, failure: str) -> None:
    sys.stdout.buffer.write(orjson.dumps([spent, failure]) + b"\n")
    sys.stdout.buffer.flush()


def _tried(tokenizer: LLTokenizer, kind: str, text: str) -> tuple[int, str]:
    """Return the bytes that a constraint took, and why it failed, from a child process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            _within_bounds()
            os.write(writer, orjson.dumps(_spent(tokenizer, kind, text)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        reply = pipe.read()
    os.waitpid(child, 0)
    spent, failure = orjson.loads(reply) if reply else (0, TOO_COMPLEX)
    return int(spent), failure


def _within_bounds() -> None:
    """Set the bounds of this process."""
    most = _status("VmSize") + MOST_BYTES
    for what, bound in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, MOST_CPU_S),
        (resource.RLIMIT_AS, most),
        (resource.RLIMIT_STACK, STACK_BYTES),
    ):
        resource.setrlimit(what, (bound, bound))
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
