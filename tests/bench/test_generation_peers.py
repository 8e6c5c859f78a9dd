"""The comparison of generating servers: recorded lengths, and answers that are checked."""

from __future__ import annotations

import asyncio
import shlex
import statistics
import sys
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from generation_peers import processes, vllm_front
from generation_peers.command import main
from generation_peers.engines import Setup, vllm, vllm_behind_our_front
from generation_peers.lengths import Question, questions
from generation_peers.load import Round, WrongAnswerError, ask
from generation_peers.measuring import median
from generation_peers.vllm_front import Turn, Turns
from support.loopback import on_loopback


def test_lengths_are_those_of_the_recording_and_fit_the_context() -> None:
    found = questions(150, scale=1.0, context_tokens=2048, vocabulary=256)

    assert len(found) == 150
    assert all(len(one.prompt) + one.answer_tokens <= 2048 for one in found)
    assert 500 < statistics.mean(len(one.prompt) for one in found) < 1155
    assert 150 < statistics.mean(one.answer_tokens for one in found) < 250
    assert all(0 < token < 256 for one in found for token in one.prompt)
    assert found == questions(150, scale=1.0, context_tokens=2048, vocabulary=256)


def test_a_scale_divides_prompts_and_answers() -> None:
    whole = questions(20, scale=1.0, context_tokens=100_000, vocabulary=256)
    eighth = questions(20, scale=8.0, context_tokens=100_000, vocabulary=256)

    for full, small in zip(whole, eighth, strict=True):
        assert len(small.prompt) == max(1, round(len(full.prompt) / 8))
        assert small.answer_tokens == max(1, round(full.answer_tokens / 8))


def test_medians_are_taken_of_each_quantity() -> None:
    rounds = [Round(10, 3.0, 1.0, 0.1), Round(10, 1.0, 3.0, 0.3), Round(10, 2.0, 2.0, 0.2)]

    assert median(rounds) == Round(10, 2.0, 2.0, 0.2)


async def answered(body: bytes, status: int = 200) -> object:
    """Ask for five tokens and get this body."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body, status=status)

    async with (
        on_loopback(answer, method="POST", path="/v1/completions") as url,
        ClientSession(url) as session,
    ):
        return await ask(session, "m", Question((1, 2), 5))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b'data: {"usage": {"completion_tokens": 4}}\n\n', 200, id="too few tokens"),
        pytest.param(b"data: [DONE]\n\n", 200, id="no usage"),
        pytest.param(b"busy", 429, id="refused"),
    ],
)
async def test_an_answer_of_another_length_is_no_measurement(body: bytes, status: int) -> None:
    with pytest.raises(WrongAnswerError):
        await answered(body, status)


async def test_an_answer_of_the_length_asked_for_is_counted() -> None:
    found = await answered(b'data: {"usage": {"completion_tokens": 5}}\n\n')

    assert found.tokens == 5  # type: ignore[attr-defined]


async def test_the_cpu_of_a_server_includes_the_processes_that_it_started(tmp_path: Path) -> None:
    child = "s = sum(range(20_000_000)); import time; time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with processes.started([sys.executable, "-c", parent], {}, tmp_path / "log") as process:
        for _ in range(200):
            if processes.cpu_s(process.pid) > 0.1:
                break
            await asyncio.sleep(0.1)
        members = [one.pid for one in processes.group_members(process.pid)]
        assert len(members) == 2
        assert processes.cpu_s(process.pid) > 0.1

    assert not processes.group_members(process.pid)


def test_the_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    assert ended.value.code == 0
    assert "--vllm PYTHON" in capsys.readouterr().out


@pytest.mark.parametrize("gpu", [False, True])
def test_both_servers_give_vllm_the_same_arguments(gpu: bool) -> None:
    setup = Setup(folder=Path("model"), context_tokens=1024, seats=16, gpu=gpu)
    own, front = vllm(setup, "env/bin/python", 1), vllm_behind_our_front(setup, "bin/python", 2)

    passed_on = shlex.split(front.command[front.command.index("--vllm-args") + 1])
    assert passed_on == own.command[-len(passed_on) :]
    assert ("--enforce-eager" in passed_on) is not gpu
    assert ("bfloat16" in passed_on) is gpu


def test_random_arrivals_bring_the_load_that_is_asked_for() -> None:
    asked = [Question((1,), 100)] * 4000

    found = vllm_front.arrivals(asked, 500.0)

    assert list(found) == sorted(found)
    assert found[-1] == pytest.approx(4000 * 100 / 500.0, rel=0.05)


def turn(wall_s: float, *first_tokens_s: float) -> Turn:
    return Turn(Round(100, wall_s, 1.0, 0.0), first_tokens_s)


@pytest.mark.parametrize(
    ("front_wall_s", "front_first_s", "hold"),
    [
        pytest.param(10.2, 0.5, [True, True], id="2 % slower, equal first tokens"),
        pytest.param(10.4, 0.5, [False, True], id="4 % slower"),
        pytest.param(9.0, 0.6, [True, False], id="faster, later first tokens"),
    ],
)
def test_turns_are_compared_pair_by_pair(
    front_wall_s: float, front_first_s: float, hold: list[bool]
) -> None:
    # the second turn was disturbed for both servers
    own = [turn(10.0, 0.5, 0.5), turn(30.0, 2.0, 2.0), turn(10.0, 0.5, 0.5)]
    disturbed = turn(3 * front_wall_s, 4 * front_first_s, 4 * front_first_s)
    calm = turn(front_wall_s, front_first_s, front_first_s)

    found = vllm_front.figures(Turns(own, [calm, disturbed, calm]))

    assert [one.holds for one in found if one.holds is not None] == hold


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "python"

    with (
        pytest.raises(processes.NotStartedError, match=f"must be executable; got {missing}"),
        processes.started([str(missing)], {}, tmp_path / "log"),
    ):
        pass
