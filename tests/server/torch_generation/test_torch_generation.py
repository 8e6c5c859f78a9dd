"""Our executor against transformers' `generate`: always the same tokens, however it is computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from headroom_server.engine import LoadError
from headroom_server.torch_generation.executor import TorchExecutor
from support.torch_generation_world import (
    MODELS,
    OPTIONS,
    Loop,
    expected_tokens,
    make_model,
    prompt_of,
    request_of,
)

Made = Callable[[str], tuple[Path, Any]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    models: dict[str, tuple[Path, Any]] = {}

    def make(name: str) -> tuple[Path, Any]:
        if name not in models:
            folder = tmp_path_factory.mktemp(name)
            models[name] = folder, make_model(folder, name)
        return models[name]

    return make


def loop_of(folder: Path, chunk_tokens: int = 1000) -> Loop:
    return Loop(TorchExecutor(folder, OPTIONS), chunk_tokens)


@pytest.mark.parametrize("name", MODELS)
def test_every_family_answers_as_transformers_does(made: Made, name: str) -> None:
    folder, model = made(name)
    for length in (1, 5, 40, 90):
        prompt = prompt_of(length, length)
        expected = expected_tokens(model, prompt, 12)
        assert loop_of(folder).run(request_of(prompt, 12)) == [expected]
        assert loop_of(folder, 7).run(request_of(prompt, 12)) == [expected]


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_every_size_of_chunk_gives_the_same_answer(made: Made, name: str) -> None:
    folder, model = made(name)
    prompt = prompt_of(30)
    expected = expected_tokens(model, prompt, 6)
    loop = loop_of(folder)
    for chunk_tokens in range(1, 31):
        loop.chunk_tokens = chunk_tokens
        assert loop.run(request_of(prompt, 6)) == [expected]


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "mistral"])
def test_sequences_that_join_and_leave_do_not_change_an_answer(made: Made, name: str) -> None:
    folder, model = made(name)
    loop = loop_of(folder, 13)
    added = []
    for number in range(6):
        prompt = prompt_of(1 + 17 * number, number)
        added.append(loop.add(request_of(prompt, 4 + number, key=number)))
        loop.step()
    while not all(one.ended for one in added):
        loop.step()
    for one in added:
        request = one.sequence.request
        assert one.answer == expected_tokens(model, request.prompt, request.max_tokens)


def test_recomputation_after_preemption_gives_the_same_answer(made: Made) -> None:
    folder, model = made("qwen2")
    prompt = prompt_of(21)
    loop = loop_of(folder, 10)
    one = loop.add(request_of(prompt, 10))
    while len(one.answer) < 5:
        loop.step()
    one.computed, one.blocks = 0, [loop.free.pop() for _ in one.blocks]
    while not one.ended:
        loop.step()
    assert one.answer == expected_tokens(model, prompt, 10)


def test_shared_blocks_of_a_prefix_give_the_same_answer(made: Made) -> None:
    folder, model = made("llama")
    shared = prompt_of(16)
    loop = loop_of(folder)
    first = loop.add(request_of((*shared, 3, 4, 5), 3))
    loop.step()
    second = loop.add(request_of((*shared, 9), 8, key=2))
    second.blocks[:2] = first.blocks[:2]
    second.computed = 16
    while not (first.ended and second.ended):
        loop.step()
    assert second.answer == expected_tokens(model, (*shared, 9), 8)
    assert first.answer == expected_tokens(model, (*shared, 3, 4, 5), 3)


@pytest.mark.parametrize("chunk_tokens", [1000, 7])
def test_sequence_whose_numbers_overflow_fails_and_spoils_no_later_one(
    tmp_path: Path, chunk_tokens: int
) -> None:
    model = make_model(tmp_path, "llama")
    short, long = prompt_of(9, 5), prompt_of(40, 6)
    expected = [expected_tokens(model, prompt, 12) for prompt in (short, long)]
    used = {*short, *long, *expected[0], *expected[1]}
    overflows = next(token for token in range(1, 199) if token not in used)
    with torch.no_grad():
        model.get_input_embeddings().weight[overflows] = float("inf")
    model.save_pretrained(tmp_path)
    loop = loop_of(tmp_path, chunk_tokens)
    spoilt = loop.add(request_of((3, overflows, *prompt_of(18)), 4))
    with pytest.raises(FloatingPointError, match="must be finite; got NaN or infinity"):
        loop.step()
    loop.running.clear()
    loop.free += reversed(spoilt.blocks)  # the next sequences get its blocks
    requests = [request_of(short, 12, key=2), request_of(long, 12, key=3)]
    assert loop.run(*requests) == expected


def test_weights_in_several_files_are_read(tmp_path: Path) -> None:
    model = make_model(tmp_path, "llama", shard="60KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    prompt = prompt_of(9)
    assert loop_of(tmp_path).run(request_of(prompt, 5)) == [expected_tokens(model, prompt, 5)]


@pytest.mark.parametrize("drafter", ["itself", "another"])
def test_a_draft_model_changes_the_iterations_and_not_the_tokens(
    made: Made, tmp_path: Path, drafter: str
) -> None:
    folder, model = made("llama")
    draft_folder = folder
    if drafter == "another":
        draft_folder = tmp_path
        make_model(tmp_path, "qwen2", seed=5, num_hidden_layers=1)
    executor = TorchExecutor(folder, OPTIONS, draft_folder=draft_folder)
    loop = Loop(executor)
    prompts = [prompt_of(19, 1), prompt_of(30, 2)]
    expected = [expected_tokens(model, prompt, 20) for prompt in prompts]
    requests = [request_of(prompt, 20, key=key) for key, prompt in enumerate(prompts)]
    assert loop.speculate(3, *requests) == expected
    assert (loop.iterations <= 6) == (drafter == "itself")
    for key in range(2):
        executor.forget(key)
    assert executor.draft([], 3) == []


def test_wrong_and_right_drafts_leave_the_memory_as_without_them(made: Made) -> None:
    folder, model = made("qwen3")
    prompt = prompt_of(12)
    expected = expected_tokens(model, prompt, 12)
    loop = loop_of(folder)
    proposals = [(), tuple(expected[1:4]), (5, 5, 5), (expected[6], 0), ()]
    one = loop.add(request_of(prompt, 12))
    for proposed in proposals:
        loop.advance([one], [proposed])
    while not one.ended:
        loop.step()
    assert one.answer == expected


def test_memory_that_holds_no_whole_context_is_refused(made: Made) -> None:
    folder, _ = made("llama")
    options = dataclasses.replace(OPTIONS, kv_bytes=1000)
    with pytest.raises(LoadError, match="must hold one context of 256 tokens"):
        TorchExecutor(folder, options).load()


def test_int8_weights_and_bfloat16_answer(made: Made) -> None:
    folder, _ = made("llama")
    for fields in ({"int8": True}, {"dtype": "bfloat16"}, {"dtype": "bfloat16", "int8": True}):
        options = dataclasses.replace(OPTIONS, **cast("Any", fields))
        loop = Loop(TorchExecutor(folder, options))
        (answer,) = loop.run(request_of(prompt_of(20), 5))
        assert len(answer) == 5
