"""Folders of language models as Hugging Face publishes them."""

from __future__ import annotations

from pathlib import Path

from headroom_server.engine import LoadError
from headroom_server.repository import files, model_uri
from headroom_server.repository.formats import DESCRIPTION
from headroom_server.settings import Settings

CONFIG, TOKENIZER = "config.json", "tokenizer.json"


def is_model(folder: Path) -> bool:
    """Return whether a folder has a model's configuration and tokenizer, and no description."""
    return (
        (folder / CONFIG).is_file()
        and (folder / TOKENIZER).is_file()
        and not (folder / DESCRIPTION).exists()
    )


def check_files(folder: Path) -> None:
    """Check what is next to the configuration, for a library that opens the files itself.

    Raises:
        LoadError: an entry leads outside, or is neither a folder nor a regular file.
    """
    for one in sorted(folder.iterdir()):
        (files.inside if one.is_dir() else files.regular)(folder, one)


def model_folder(root: Path) -> Path | None:
    """Return the folder of the only language model: the root, or its only folder.

    Raises:
        LoadError: the folder is a link that leads outside.
    """
    if is_model(root):
        return root
    try:
        found = [one for one in sorted(root.iterdir()) if one.is_dir() and is_model(one)]
        others = [one for one in root.iterdir() if (one / DESCRIPTION).exists()]
    except OSError:
        return None
    return files.inside(root, found[0]) if len(found) == 1 and not others else None


def configured_folder(settings: Settings) -> Path | None:
    """Return the folder of the language model that the settings name; None if they do not.

    Raises:
        LoadError: HEADROOM_MODEL_URI is invalid, or its only folder leads outside.
    """
    try:
        root = model_uri.directory(settings.model_uri)
    except ValueError as error:
        raise LoadError(f"HEADROOM_MODEL_URI: {error}") from error
    return None if root is None else model_folder(Path(root))


def generates(settings: Settings) -> bool:
    """Return whether these settings serve a generating model.

    Raises:
        LoadError: HEADROOM_MODEL_URI is invalid.
    """
    if settings.engine.startswith(("generation", "vllm")):
        return True
    return (
        settings.engine == "torch"
        and not settings.model_class
        and configured_folder(settings) is not None
    )
