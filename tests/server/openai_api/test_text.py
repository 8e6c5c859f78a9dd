"""Text of answers: detokenization, stop strings, tool calls, chat templates, minimum lengths."""

from __future__ import annotations

import json
import re
import sys
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from headroom_server.engine import LoadError
from headroom_server.errors import InvalidRequestError
from headroom_server.generation.text.chat_template import ChatTemplate, load_chat_template
from headroom_server.generation.text.huggingface_tokenizer import (
    HuggingFaceTokenizer,
    WindowDetokenizer,
)
from headroom_server.generation.text.minimum_length import MinimumLength
from headroom_server.generation.text.stop_strings import StopStrings
from headroom_server.generation.text.tokenizer import ByteTokenizer
from headroom_server.generation.text.tokenizer_folder import load_tokenizer
from headroom_server.generation.text.tool_calls import Call, Parsed, ToolStyle, parser_of


def byte_level() -> Tokenizer:
    """A byte-level tokenizer whose only merges are letters of one character in two bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {one: number for number, one in enumerate(alphabet)}
    vocabulary["ab"] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("a", "b")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(["<tool_call>", "é+"])
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def metaspace() -> Tokenizer:
    """A tokenizer in the style of Llama 2: spaces as U+2581, unknown characters as bytes."""
    words = ["<unk>", *(f"<0x{value:02X}>" for value in range(256)), "▁", "a", "b", "▁a", "é"]
    vocabulary = {one: number for number, one in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    return tokenizer


BYTE_LEVEL = HuggingFaceTokenizer(byte_level(), {258})
METASPACE = HuggingFaceTokenizer(metaspace(), set())


def cut(items: list[int], cuts: list[int]) -> list[list[int]]:
    """Items in pieces, cut at these positions."""
    edges = sorted({0, len(items), *(at % (len(items) + 1) for at in cuts)})
    return [items[a:b] for a, b in pairwise(edges)]


@given(st.lists(st.integers(0, 260), max_size=40), st.lists(st.integers(0, 100), max_size=10))
def test_byte_level_pieces_are_the_text_decoded_at_once(tokens: list[int], cuts: list[int]) -> None:
    detokenizer = BYTE_LEVEL.detokenizer()
    pieces = [detokenizer.push(piece) for piece in cut(tokens, cuts)]
    assert "".join(pieces) + detokenizer.flush() == BYTE_LEVEL.library.decode(tokens)


@given(st.text(max_size=30), st.lists(st.integers(0, 100), max_size=10))
def test_text_survives_tokens_in_pieces_without_broken_characters(
    text: str, cuts: list[int]
) -> None:
    tokens = list(BYTE_LEVEL.encode(text, special=False))
    for tokenizer in (BYTE_LEVEL, ByteTokenizer()):
        tokens = list(tokenizer.encode(text, special=False))
        detokenizer = tokenizer.detokenizer()
        pieces = [detokenizer.push(piece) for piece in cut(tokens, cuts)]
        assert "".join(pieces) == text
        assert detokenizer.flush() == ""


def test_whole_text_of_tokens_names_the_special_ones() -> None:
    tokens = [*BYTE_LEVEL.encode("ab é", special=False), 259]
    assert BYTE_LEVEL.decode(tokens) == "ab é<|end|>"
    assert [BYTE_LEVEL.token_name(one) for one in tokens] == ["ab", "Ġ", "Ã", "©", "<|end|>"]
    assert (BYTE_LEVEL.token_name(9999), ByteTokenizer().token_name(9999)) == ("", "")


@given(st.text(alphabet="ab é€𝄞", max_size=20), st.lists(st.integers(0, 100), max_size=10))
def test_metaspace_pieces_are_the_text_decoded_at_once(text: str, cuts: list[int]) -> None:
    known = {"é": 261, "a": 258, "b": 259, " ": 257}
    tokens = [
        token
        for character in text
        for token in (
            [known[character]] if character in known else [b + 1 for b in character.encode()]
        )
    ]
    detokenizer = METASPACE.detokenizer()
    pieces = [detokenizer.push(piece) for piece in cut(tokens, cuts)]
    assert "\ufffd" not in "".join(pieces)
    assert "".join(pieces) + detokenizer.flush() == METASPACE.library.decode(tokens)


class CountingLibrary:
    """The tokenizer in the style of Llama 2; notes how many tokens are decoded at once."""

    def __init__(self) -> None:
        self.most = 0

    def decode(self, tokens: list[int], *, skip_special_tokens: bool) -> str:
        self.most = max(self.most, len(tokens))
        return METASPACE.library.decode(tokens, skip_special_tokens=skip_special_tokens)


@pytest.mark.parametrize(
    ("repeated", "text"),
    [
        ((0x80 + 1,), "\ufffd" * 200),
        ((999,), ""),
        ((0xE2 + 1, 0x82 + 1, 258), "\ufffd\ufffda" * 200),
    ],
    ids=["a byte that begins no character", "no text", "incomplete characters"],
)
def test_work_per_token_is_bounded_whatever_the_tokens_are(
    repeated: tuple[int, ...], text: str
) -> None:
    library = CountingLibrary()
    detokenizer = WindowDetokenizer(cast("Tokenizer", library))
    sent = "".join(detokenizer.push([token]) for token in repeated * 200)
    assert library.most <= 8
    assert sent + detokenizer.push([258]) + detokenizer.flush() == text + "a"


def test_unknown_token_of_padded_vocabulary_has_no_text() -> None:
    assert BYTE_LEVEL.detokenizer().push([151_000]) == ""
    assert BYTE_LEVEL.token_bytes(151_000) == b""


STOPS = st.lists(st.text(alphabet="ab", min_size=1, max_size=4), min_size=1, max_size=4)


@given(st.text(alphabet="abc", max_size=30), STOPS, st.lists(st.integers(0, 100), max_size=20))
def test_stop_string_ends_text_however_it_is_cut(
    text: str, stops: list[str], cuts: list[int]
) -> None:
    ends = [text.index(stop) + len(stop) for stop in stops if stop in text]
    expected = text
    if ends:
        first = min(ends)
        longest = max((stop for stop in stops if text[:first].endswith(stop)), key=len)
        expected = text[: first - len(longest)]
    edges = sorted({0, len(text), *(at % (len(text) + 1) for at in cuts)})
    matcher, sent, stopped = StopStrings(stops), "", None
    for a, b in pairwise(edges):
        released = matcher.push(text[a:b])
        sent += released.text
        stopped = released.stopped
        assert expected.startswith(sent)
        if stopped is not None:
            break
    if stopped is None:
        sent += matcher.flush()
    assert sent == expected
    assert (stopped is not None) == bool(ends)


def test_stop_strings_of_many_choices_take_no_more_than_their_own_size() -> None:
    stops = [chr(97 + number) * 256 for number in range(16)]
    tracemalloc.start()
    try:
        choices = [StopStrings(stops) for _ in range(128)]
        assert tracemalloc.get_traced_memory()[0] < 128 * 1024
    finally:
        tracemalloc.stop()
    assert choices[0].push("a" * 255).text == ""


def test_stop_strings_take_the_same_time_whatever_text_they_hold_back() -> None:
    """Searched for from each position, 16 of them took 3.5 ms for a token of each choice."""

    def steps(held: int) -> int:
        stops = ["a" * 255 + "b", *("aa" + chr(99 + number) + "d" * 253 for number in range(15))]
        matcher, count = StopStrings(stops), 0

        def traced(*_: object) -> object:
            nonlocal count
            count += 1
            return traced

        matcher.push("a" * held)
        before = sys.gettrace()
        sys.settrace(traced)  # type: ignore[arg-type]
        try:
            matcher.push("a")
        finally:
            sys.settrace(before)
        return count

    assert steps(250) <= 2 * steps(20)


def test_text_that_cannot_stop_is_not_held_back() -> None:
    matcher = StopStrings(["END"])
    assert matcher.push("abcE").text == "abc"
    assert matcher.push("Nx").text == "ENx"


DEEP = '{"name": "f", "parameters": {"a": ' + "[" * 300 + "]" * 300 + "}}"
TAGGED = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


@pytest.mark.parametrize(
    ("style", "text", "expected"),
    [
        (ToolStyle.TAGGED, TAGGED, Parsed("", (Call("f", '{"a":1}'),))),
        (ToolStyle.TAGGED, f"One.\n{TAGGED}\n{TAGGED}",
         Parsed("One.", (Call("f", '{"a":1}'),) * 2)),
        (ToolStyle.TAGGED, "a < b <tool", Parsed("a < b <tool")),
        (ToolStyle.TAGGED, TAGGED[:-5], Parsed("<tool_call>" + TAGGED[11:-5])),
        (ToolStyle.TAGGED, "<tool_call>no</tool_call>", Parsed("<tool_call>no</tool_call>")),
        (ToolStyle.TAGGED, '<tool_call>{"name":"f"}', Parsed("", (Call("f", "{}"),))),
        (ToolStyle.JSON, '{"name": "f", "parameters": {}}', Parsed("", (Call("f", "{}"),))),
        (ToolStyle.JSON, '[{"name": "f"}, {"name": "g"}]',
         Parsed("", (Call("f", "{}"), Call("g", "{}")))),
        (ToolStyle.JSON, '{"a": 1}', Parsed('{"a": 1}')),
        (ToolStyle.JSON, DEEP, Parsed(DEEP)),
        (ToolStyle.JSON, " Plain {", Parsed(" Plain {")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_tool_calls_are_found_however_the_text_is_cut(
    style: ToolStyle, text: str, expected: Parsed, size: int
) -> None:
    parser = parser_of(style)
    parts = [parser.push(text[at : at + size]) for at in range(0, len(text), size)]
    parts.append(parser.flush())
    assert "".join(one.text for one in parts).strip() == expected.text.strip()
    assert tuple(call for one in parts for call in one.calls) == expected.calls


CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize(
    ("style", "first", "piece"),
    [
        (ToolStyle.TAGGED, "", " " * 128),
        (ToolStyle.TAGGED, "<tool_call>", "word <" * 32),
        (ToolStyle.JSON, "", " " * 128),
        (ToolStyle.JSON, "{", "word " * 32),
    ],
)
def test_work_per_piece_does_not_grow_with_what_was_said(
    style: ToolStyle, first: str, piece: str
) -> None:
    parser = parser_of(style)
    said = [parser.push(first).text]

    def seconds(pieces: int) -> float:
        began_s = time.process_time()
        said.extend(parser.push(piece).text for _ in range(pieces))
        return time.process_time() - began_s

    early_s = seconds(500)
    seconds(20_000)
    assert seconds(500) < 10 * early_s + 0.02
    assert "".join(said) + parser.flush().text == first + piece * 21_000


def test_chat_template_renders_like_its_model_was_trained() -> None:
    template = ChatTemplate(CHATML, {})
    assert template.render([{"role": "user", "content": "hi"}]) == (
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[7].content.x }}", "messages"),
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{% for i in range(10**9) %}{% endfor %}", "Range too big"),
        ("{{ messages.append(1) }}", "unsafe"),
    ],
)
def test_template_that_fails_is_an_error_of_the_messages(source: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=re.escape(message)):
        ChatTemplate(source, {}).render([])


def test_template_with_generation_block_renders_its_content() -> None:
    source = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    assert ChatTemplate(source, {}).render([{"role": "assistant", "content": "x"}]) == "x"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"tokenizer_config.json": '{"chat_template": "A"}'}, "A"),
        ({"tokenizer_config.json": '{"chat_template": "A"}', "chat_template.jinja": "B"}, "B"),
        ({"tokenizer_config.json":
          '{"chat_template": [{"name": "default", "template": "C"}]}'}, "C"),
        ({"tokenizer_config.json": '{"bos_token": {"content": "<s>"}, "chat_template": '
          '"{{ bos_token }}"}'}, "<s>"),
    ],
)  # fmt: skip
def test_template_is_found_where_models_keep_it(
    tmp_path: Path, files: dict[str, str], expected: str | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = load_chat_template(tmp_path)
    assert (None if found is None else found.render([])) == expected


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config.json": '{"chat_template": [{"name": "default", "template": "plain"}, '
         '{"name": "tool_use", "template": "<tool_call> {{ tools[0].name }}"}]}'},
        {"chat_template.jinja": "plain",
         "additional_chat_templates/tool_use.jinja": "<tool_call> {{ tools[0].name }}"},
    ],
)  # fmt: skip
def test_chats_with_tools_have_a_template_of_their_own(
    tmp_path: Path, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = load_chat_template(tmp_path)
    assert found is not None
    assert found.takes_tools
    assert found.tool_style is ToolStyle.TAGGED
    assert found.render([]) == "plain"
    assert found.render([], tools=[{"name": "f"}]) == "<tool_call> f"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "tokenizer.json is required"),
        ({"tokenizer.json": "{"}, "tokenizer.json must be valid"),
    ],
)
def test_folder_without_tokenizer_is_refused(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(LoadError, match=message):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (models.BPE(), "must have tokens for text; got none in a vocabulary of 0"),
        (models.WordLevel({}, unk_token="?"), r"must encode text; got .*Missing \[UNK\]"),
        (models.Unigram([("ab", -1.0)]), "must encode text; got .*`unk_id` is missing"),
    ],
)
def test_tokenizer_that_has_no_tokens_for_text_is_refused(
    tmp_path: Path, model: models.Model, message: str
) -> None:
    Tokenizer(model).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(LoadError, match=message):
        load_tokenizer(tmp_path)


def test_end_tokens_come_from_every_file(tmp_path: Path) -> None:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7, 8]}')
    (tmp_path / "config.json").write_text('{"eos_token_id": 9}')
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<|end|>"}')
    end = byte_level().token_to_id("<|end|>")
    assert load_tokenizer(tmp_path).eos_tokens == {7, 8, 9, end}


def test_end_tokens_that_the_tokenizer_lacks_are_left_out(tmp_path: Path) -> None:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    wrong = [7, True, -1, 1 << 31, 1 << 32, 10**15, *range(1000, 100_000)]
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": wrong}))
    assert load_tokenizer(tmp_path).eos_tokens == {7}


def test_minimum_length_forbids_the_end_before_it() -> None:
    grammar = MinimumLength(2, {3}, 8)
    for _ in range(2):
        assert grammar.allowed()[0] == 0b11110111
        assert grammar.accept(1)
    assert grammar.allowed()[0] == 0xFF
    assert not grammar.finished
