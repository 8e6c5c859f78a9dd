"""Folders written by transformers are served: the same tokens as `generate`, through the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tokenizers
from transformers import PreTrainedTokenizerFast

from support.composed_generation import composed, settings_of
from support.torch_generation_world import SIZES, expected_tokens, make_model, prompt_of

pytestmark = pytest.mark.clock
ANSWER = 12
PROMPTS = [prompt_of(length, seed=length) for length in (1, 3, 17, 60, 90)]


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer as transformers does: token 7 is the word `w7`."""
    words = {f"w{token}": token for token in range(SIZES["vocab_size"])}
    library = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    library.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    published: Any = PreTrainedTokenizerFast  # it has no types
    published(tokenizer_object=library).save_pretrained(folder)


def tokens_of(choice: Any) -> list[int]:
    return [int(word.removeprefix("w")) for word in choice["text"].split()]


@pytest.mark.parametrize("drafts", [0, 4])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "mistral"])
async def test_server_answers_the_tokens_of_generate(
    family: str, drafts: int, tmp_path: Path
) -> None:
    model = make_model(tmp_path, family)
    write_tokenizer(tmp_path)
    expected = [expected_tokens(model, prompt, ANSWER) for prompt in PROMPTS]
    settings = settings_of(
        tmp_path, dtype="float32", max_drafts=drafts, block_tokens=8, max_iteration_tokens=64
    )
    words = [" ".join(f"w{token}" for token in prompt) for prompt in PROMPTS]
    async with composed(settings) as world:
        for prompts in (PROMPTS, words):
            answer = await world.complete(prompts, max_tokens=ANSWER, ignore_eos=True)
            assert [tokens_of(one) for one in answer["choices"]] == expected
            assert answer["usage"]["prompt_tokens"] == sum(map(len, PROMPTS))
