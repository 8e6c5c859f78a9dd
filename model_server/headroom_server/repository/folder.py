"""The folder of models: finds files, and never leaves the folder.

    <repository>/<model>/<version>/model.toml     versions are integers from 1
    <repository>/<model>/model.toml               version 1
    <repository>/model.toml                       one model, named by the server

Weights are next to their description. Links are followed as `files` says.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from headroom_server.engine import LoadError
from headroom_server.repository import files
from headroom_server.repository.description import Description
from headroom_server.repository.description_file import MAX_BYTES, parse
from headroom_server.repository.formats import DESCRIPTION

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
VERSION = re.compile(r"[1-9][0-9]{0,17}")
IGNORED = frozenset({"lost+found", "__pycache__"})
CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Repository:
    """The versions of each model, by number, and the problems in the folder."""

    root: Path
    models: Mapping[str, Mapping[int, Path]]
    problems: Mapping[str, str]
    """Problem and next step by model folder."""


def scan(root: Path, single_name: str) -> Repository:
    """Scan a folder. A repository with a single model names it `single_name`.

    Raises:
        LoadError: it is not a folder, or cannot be read.
    """
    try:
        root = root.resolve(strict=True)
        if (root / DESCRIPTION).exists():
            return Repository(root, {single_name: {1: root}}, {})
        models: dict[str, Mapping[int, Path]] = {}
        problems: dict[str, str] = {}
        for folder in sorted(root.iterdir()):
            if folder.name.startswith(".") or folder.name in IGNORED or not folder.is_dir():
                continue
            try:
                models[_name(folder.name)] = _versions(root, folder)
            except LoadError as error:
                problems[folder.name] = str(error)
    except OSError as error:
        raise LoadError(
            f"the repository must be a folder with models; got {root} "
            f"({error.strerror}): create it, mount it, or set HEADROOM_MODEL_URI to another one"
        ) from error
    return Repository(root, MappingProxyType(models), MappingProxyType(problems))


def _name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise LoadError(
            "a model's name must have at most 253 letters, digits, '.', '_' and '-', and begin and "
            "end with a letter or digit: rename the folder"
        )
    return name


def _versions(root: Path, folder: Path) -> dict[int, Path]:
    inner = {int(one.name): one for one in folder.iterdir() if VERSION.fullmatch(one.name)}
    if (folder / DESCRIPTION).exists():
        if inner:
            raise LoadError(
                f"there must be {DESCRIPTION} or versions; got both, {sorted(inner)}: move it "
                "into one"
            )
        inner = {1: folder}
    described = {number: one for number, one in inner.items() if (one / DESCRIPTION).exists()}
    if not described:
        raise LoadError(
            f"there is no {DESCRIPTION} here or in a version's folder (1, 2, ...): add one, or "
            f"remove the folder"
        )
    return {number: files.inside(root, one) for number, one in sorted(described.items())}


def describe(root: Path, folder: Path) -> Description:
    """Return the description of a model's version.

    Raises:
        LoadError: it does not exist, or is wrong.
    """
    data = files.read(root, folder / DESCRIPTION, MAX_BYTES)
    if data is None:
        raise LoadError(f"{DESCRIPTION} does not exist: add the file")
    return parse(data, DESCRIPTION)


def weights(root: Path, folder: Path, name: str) -> Path:
    """Return the weights file next to a description.

    Raises:
        LoadError: it is missing, outside the repository, or not a file.
    """
    return files.regular(root, folder / name)


def sha256(path: Path) -> str:
    """Return the digest of a file, in hex.

    Raises:
        LoadError: the file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise LoadError(f"{path.name}: cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def check_digest(name: str, found: str, pinned: str | None) -> None:
    """Compare a digest with the pinned one, if there is one.

    Raises:
        LoadError: they differ.
    """
    if pinned is not None and not hmac.compare_digest(found, pinned):
        raise LoadError(
            f"{name}: its sha256 is {found}, and {DESCRIPTION} pins {pinned}: find out who changed "
            f"it, then pin the new one"
        )


def chosen(repository: Repository, wanted: Sequence[str]) -> dict[str, dict[int, Path]]:
    """Select what to serve: `name` is the latest version, `name:3` that one; no names: all.

    Raises:
        LoadError: a name or version is not in the repository, or nothing is.
    """
    found: dict[str, dict[int, Path]] = {}
    for entry in wanted or sorted({*repository.models, *repository.problems}):
        name, _, version = entry.partition(":")
        if name in repository.problems:
            raise LoadError(f"model {name}: {repository.problems[name]}")
        versions = repository.models.get(name)
        if versions is None:
            raise LoadError(
                f"the repository has no model {name!r}; it has {sorted(repository.models)}"
            )
        if version and not (VERSION.fullmatch(version) and int(version) in versions):
            raise LoadError(f"model {name} has no version {version!r}; it has {sorted(versions)}")
        number = int(version) if version else max(versions)
        found.setdefault(name, {})[number] = versions[number]
    if not found:
        raise LoadError(
            f"the repository contains no model: add <model>/{DESCRIPTION} with its weights, or "
            f"{DESCRIPTION} itself"
        )
    return found
