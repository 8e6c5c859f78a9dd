"""A tokenizer whose pattern takes too long refuses the text, and a model that has it at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from headroom_server.engine import LoadError
from headroom_server.errors import InvalidRequestError
from headroom_server.generation.text.huggingface_tokenizer import HuggingFaceTokenizer
from headroom_server.generation.text.library_panics import panics_raise
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer_folder import load_tokenizer
from support.generation_front import front


def backtracking(pattern: str) -> Tokenizer:
    vocabulary = {one: place for place, one in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    library = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_of])
    return library


async def test_text_that_a_pattern_cannot_split_in_time_is_an_invalid_prompt() -> None:
    tokenizer = HuggingFaceTokenizer(backtracking("(a+)+$"), [])
    async with front(text=ModelText(tokenizer=tokenizer)) as world:
        slow = await world.complete("a" * 40 + "b", max_tokens=1)
        assert slow.status_code == 400, slow.text
        assert "tokenizer splits in time" in slow.json()["error"]["message"]
        usual = await world.complete("b", max_tokens=1)
        assert usual.status_code == 200, usual.text


def test_model_whose_pattern_splits_no_letters_in_time_is_not_loaded(tmp_path: Path) -> None:
    backtracking("([a-y]+)+$").save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(LoadError, match="takes too long"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("other", [KeyboardInterrupt(), ValueError("x")])
def test_what_is_no_panic_stays(other: BaseException) -> None:
    with pytest.raises(type(other)), panics_raise(InvalidRequestError("a panic")):
        raise other


PANIC = """
from tokenizers import Regex, pre_tokenizers
from headroom_server.process import quiet_panics
quiet_panics()
try:
    pre_tokenizers.Split(Regex("(a+)+$"), "isolated").pre_tokenize_str("a" * 40 + "b")
except BaseException as panic:
    print(type(panic).__name__)
"""


def test_panic_is_a_line_of_the_log_whatever_the_environment_says() -> None:
    environment = {**os.environ, "RUST_BACKTRACE": "full"}
    ran = subprocess.run(
        [sys.executable, "-c", PANIC], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "PanicException"
    assert len(ran.stderr) < 400, ran.stderr
