"""A Hugging Face folder: how it is found, its text, and grammars over its tokens."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from headroom_server.cli import configured, main
from headroom_server.engine import LoadError
from headroom_server.generation.text.huggingface_folder import load_text
from headroom_server.generation.token_grammar import TokenGrammar
from headroom_server.generation_composition.engines import build_text
from headroom_server.repository.huggingface import configured_folder, generates
from headroom_server.repository.random_llama import END, write_random_llama
from headroom_server.settings import Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("models") / "tiny"
    write_random_llama(found)
    return found


def settings(uri: Path | str, **fields: object) -> Settings:
    return configured({"model_uri": f"file://{uri}", **fields}, {})


def test_folder_of_a_language_model_is_served_by_generating(folder: Path, tmp_path: Path) -> None:
    assert generates(settings(folder))
    assert configured_folder(settings(folder.parent)) == folder
    assert not generates(settings(tmp_path))
    assert not generates(settings(folder, engine="emulated"))
    assert generates(settings(tmp_path, engine="generation"))


def test_generation_without_a_model_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="HEADROOM_MODEL_URI must be a Hugging Face folder"):
        build_text(settings(tmp_path, engine="generation"))


def test_random_model_has_a_tokenizer_and_a_chat_template(folder: Path) -> None:
    text = load_text(folder)
    assert text.tokenizer.eos_tokens == {257}
    assert text.chat is not None
    prompt = text.chat.render([{"role": "user", "content": "grüß"}])
    tokens = text.tokenizer.encode(prompt, special=False)
    assert tokens[:2] == [256, 258]
    assert text.tokenizer.detokenizer().push(tokens) == "user\ngrüß\nassistant\n"
    assert text.tokenizer.token_bytes(257) == END.encode()


def test_sample_model_is_made_by_the_command_once(tmp_path: Path) -> None:
    arguments = ["sample-model", str(tmp_path / "m"), "--hidden-size", "16", "--layers", "1"]
    assert main(arguments) == 0
    assert orjson.loads((tmp_path / "m" / "config.json").read_bytes())["hidden_size"] == 16
    assert main(arguments) == 1


def write(grammar: TokenGrammar, wanted: str) -> str:
    """Write `wanted` while the grammar allows it, then whatever it allows, to its end."""
    written = bytearray()
    for _ in range(200):
        mask = int.from_bytes(grammar.allowed(), "little")
        byte = wanted.encode()[len(written) :][:1]
        characters = [*byte, *range(0x20, 0x7F)]
        found = next((one for one in characters if mask >> TOKEN[one] & 1), None)
        if found is None:
            break
        assert grammar.accept(TOKEN[found])
        written.append(found)
        if grammar.finished:
            break
    return written.decode()


TOKEN = {value: value for value in range(256)}


@pytest.mark.parametrize(
    ("kind", "text", "wanted", "written"),
    [
        ("regex", "[a-c]{3}x?", "abz", "ab"),
        ("choice", '["red", "green"]', "grey", "green"),
        ("grammar", 'start: "a" "b"', "ab", "ab"),
    ],
)
def test_grammar_allows_only_what_it_describes(
    folder: Path, kind: str, text: str, wanted: str, written: str
) -> None:
    grammars = load_text(folder).grammars
    assert grammars is not None
    found = write(grammars.compile(kind, text), wanted)
    assert found.startswith(written)
    assert len(found) <= 5


def test_schema_makes_any_answer_fit_it(folder: Path) -> None:
    grammars = load_text(folder).grammars
    assert grammars is not None
    schema = {
        "type": "object",
        "properties": {"a": {"type": "boolean"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    found = write(grammars.compile("json_schema", orjson.dumps(schema).decode()), '{"a": tr')
    assert orjson.loads(found) == {"a": True}


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("regex", "((", "unclosed group"),
        ("grammar", "start: x", 'unknown name: "x"'),
        ("json_schema", '{"type": "string", "pattern": "(?=a)b"}', "look-around, .*not supported"),
    ],
)
def test_invalid_constraint_is_an_error_with_its_reason(
    folder: Path, kind: str, text: str, reason: str
) -> None:
    grammars = load_text(folder).grammars
    assert grammars is not None
    with pytest.raises(ValueError, match=reason) as caught:
        grammars.compile(kind, text)
    assert "\n" not in str(caught.value)
