"""`python -m load.tokens`: streams completions in steps of load, and times their tokens."""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import time
from collections.abc import Callable, Sequence

import aiohttp

from load.outcomes import Outcome
from load.streams import stream
from load.token_messages import Answer, Began, Concluded, Promises, TokenMessage, concluded, write
from load.token_plan import Lengths, Step, Wanted, duration_s, requests, steps

ALL_RIGHT, NOT_ALL_RIGHT = 0, 1
TIMEOUT_S = 120.0


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if every request got its right answer, 1 if not."""
    options = _parser().parse_args(argv)
    lengths = Lengths(
        prompt_tokens=options.prompt_tokens,
        output_tokens=options.output_tokens,
        vocabulary=options.vocabulary,
    )
    wanted = requests(options.steps, lengths, options.seed)
    promises = Promises(first_token_s=options.first_token, output_token_s=options.output_token)
    summary = asyncio.run(
        _send(
            options.url, options.model, wanted, duration_s(options.steps), promises, options.timeout
        )
    )
    return ALL_RIGHT if summary.outcomes == {Outcome.OK.value: len(wanted)} else NOT_ALL_RIGHT


async def _send(
    url: str,
    model: str,
    wanted: Sequence[Wanted],
    seconds: float,
    promises: Promises,
    timeout_s: float,
) -> Concluded:
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, timeout=timeout, connector=connector) as session:
        say(Began(unix_s=time.time(), requests=len(wanted), duration_s=seconds))
        answers = await play(session, model, wanted, say)
    summary = concluded(answers, promises)
    say(summary)
    return summary


async def play(
    session: aiohttp.ClientSession,
    model: str,
    wanted: Sequence[Wanted],
    tell: Callable[[TokenMessage], None],
) -> list[Answer]:
    """Send each request at its time, whatever happened to earlier ones; tell of each answer."""
    began_s, answers = time.perf_counter(), []

    async def one(number: int, asked: Wanted) -> None:
        late_s = time.perf_counter() - began_s - asked.due_s
        found = await stream(session, model, asked.prompt, asked.output_tokens)
        answer = Answer(
            number=number,
            due_s=asked.due_s,
            late_s=late_s,
            outcome=found.outcome,
            detail=found.detail,
            prompt_tokens=len(asked.prompt),
            output_tokens=found.tokens,
            first_token_s=None if found.first_s is None else late_s + found.first_s,
            ended_s=None if found.last_s is None else late_s + found.last_s,
        )
        answers.append(answer)
        tell(answer)

    async with asyncio.TaskGroup() as group:
        for number, asked in enumerate(wanted):
            await asyncio.sleep(max(0.0, began_s + asked.due_s - time.perf_counter()))
            group.create_task(one(number, asked))
    return answers


def say(message: TokenMessage) -> None:
    """Print a message at once."""
    sys.stdout.write(write(message) + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="load.tokens", description=__doc__, allow_abbrev=False)
    parser.add_argument("--url", required=True, help="scheme, host and port of the service")
    parser.add_argument("--model", required=True, help="name under which the model is served")
    parser.add_argument(
        "--steps",
        type=_steps,
        required=True,
        help="SECONDSxRATE, separated by commas: 60x1,90x5 is a minute at 1 request per second, "
        "then 90 s at 5",
    )
    parser.add_argument("--prompt-tokens", type=int, default=800, help="mean length of a prompt")
    parser.add_argument("--output-tokens", type=int, default=100, help="mean length of an answer")
    parser.add_argument("--vocabulary", type=int, default=256, help="tokens to draw prompts from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--first-token", type=float, default=math.inf, help="promised time to first token, seconds"
    )
    parser.add_argument(
        "--output-token",
        type=float,
        default=math.inf,
        help="promised time per output token, seconds",
    )
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="per request, seconds")
    return parser


def _steps(text: str) -> tuple[Step, ...]:
    try:
        return steps(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
