"""Loads the tokenizer of a Hugging Face folder: tokenizer.json and the files next to it."""

from __future__ import annotations

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from tokenizers import Tokenizer as LibraryTokenizer

from headroom_server.engine import LoadError
from headroom_server.generation.text.chat import ChatFormat
from headroom_server.generation.text.huggingface_tokenizer import HuggingFaceTokenizer
from headroom_server.generation.text.library_panics import panics_raise
from headroom_server.repository import files

MAX_FILE_BYTES = 256 << 20
"""Largest size of tokenizer.json; the largest published ones have 35 MB."""


def load_tokenizer(folder: Path, chat: ChatFormat | None = None) -> HuggingFaceTokenizer:
    """Load a folder's tokenizer, and the tokens that end an answer; `chat` is its chat template.

    Raises:
        LoadError: a file is missing or invalid.
    """
    data = files.read(folder, folder / "tokenizer.json", MAX_FILE_BYTES)
    if data is None:
        raise LoadError(
            "tokenizer.json is required; got none: save the tokenizer in its fast form next to the "
            "weights"
        )
    try:
        with panics_raise(LoadError("tokenizer.json must be valid; the library panics")):
            library = LibraryTokenizer.from_buffer(data)
    except LoadError:
        raise
    except Exception as error:
        raise LoadError(f"tokenizer.json must be valid; got {str(error)[:200]}") from error
    library.no_truncation()
    library.no_padding()
    _check_encodes(library)
    return HuggingFaceTokenizer(library, _eos_tokens(folder, library), chat)


def _check_encodes(library: LibraryTokenizer) -> None:
    """Check that text has tokens: every request would fail, of a server that is ready.

    Raises:
        LoadError: the vocabulary is empty, or lacks the token for what it does not know.
    """
    try:
        with panics_raise(LoadError("tokenizer.json must split text; its pattern takes too long")):
            tokens = library.encode(string.ascii_letters).ids
    except LoadError:
        raise
    except Exception as error:
        raise LoadError(f"tokenizer.json must encode text; got {str(error)[:200]}") from error
    if not tokens:
        size = library.get_vocab_size()
        raise LoadError(
            f"tokenizer.json must have tokens for text; got none in a vocabulary of {size}: save "
            "the tokenizer of the model next to the weights"
        )


def _eos_tokens(folder: Path, library: LibraryTokenizer) -> set[int]:
    found: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        value = read_json(folder, name).get("eos_token_id")
        found |= _known(library, value if isinstance(value, list) else [value])
    named = token_name(read_json(folder, "tokenizer_config.json").get("eos_token"))
    token = None if named is None else library.token_to_id(named)
    return found if token is None else found | {token}


def _known(library: LibraryTokenizer, tokens: list[object]) -> set[int]:
    """Return the tokens that the tokenizer has: with one that it lacks, no constraint compiles."""
    return {
        one
        for one in tokens
        if isinstance(one, int) and not isinstance(one, bool)
        # others are not of the library's type
        if 0 <= one < 1 << 32 and library.id_to_token(one) is not None
    }


def token_name(value: object) -> str | None:
    """Return the text of a token in tokenizer_config.json: a string, or an object with it."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def read_json(folder: Path, name: str) -> Mapping[str, Any]:
    """Return the object in a file; {} if the file does not exist.

    Raises:
        LoadError: see `files.read`; or it is not JSON, or no object.
    """
    data = files.read(folder, folder / name, files.MOST_JSON_BYTES)
    if data is None:
        return {}
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise LoadError(f"{name} must be JSON; got {error}") from error
    if not isinstance(value, dict):
        raise LoadError(f"{name} must be an object; got {type(value).__name__}")
    return value
