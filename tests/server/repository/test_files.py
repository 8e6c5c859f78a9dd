"""Files of a model that are links, pipes, devices or too large: what each loader accepts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from headroom_server.cli import configured
from headroom_server.engine import LoadError
from headroom_server.generation.text.huggingface_folder import load_text
from headroom_server.generation_composition.engines import build_engine
from headroom_server.repository import files, folder
from headroom_server.repository.checking import check
from headroom_server.repository.huggingface import model_folder
from headroom_server.repository.random_llama import write_random_llama
from headroom_server.torch_generation.loading import ExecutorOptions, load_decoder

Load = Callable[[Path, str], object]
OUTSIDE = "must be inside the repository or the model's folder; got a link that leads outside: copy"
REGULAR = "must be a regular file; got"
MISSING = "does not exist or cannot be read: add the file"


def link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def under_data(path: Path) -> None:
    """Move the file to where a mount of a ConfigMap has it."""
    data = path.parent / "..2026_11_29"
    data.mkdir()
    path.rename(data / path.name)
    (path.parent / "..data").symlink_to(data.name)
    path.symlink_to(f"..data/{path.name}")


def in_hub_cache(path: Path) -> None:
    """Move the file to where the cache of the Hugging Face hub has it."""
    blobs = path.parents[2] / "blobs"
    blobs.mkdir()
    path.rename(blobs / "0a1b")
    path.symlink_to("../../blobs/0a1b")


def in_another_cache(path: Path) -> None:
    blobs = path.parents[3] / "models--b--m" / "blobs"
    blobs.mkdir(parents=True)
    path.rename(blobs / "0a1b")
    path.symlink_to("../../../models--b--m/blobs/0a1b")


def blobs_elsewhere(path: Path) -> None:
    (path.parents[2] / "blobs").symlink_to("/etc")
    replaced(path, link("../../blobs/passwd"))


def link_to_pipe(path: Path) -> None:
    os.mkfifo(path.parent / "~pipe")
    path.symlink_to("~pipe")


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def replaced(path: Path, by: Callable[[Path], None]) -> None:
    path.unlink(missing_ok=True)
    by(path)


ATTACKS = [
    pytest.param(link("/dev/zero"), OUTSIDE, id="device"),
    pytest.param(link("/etc/passwd"), OUTSIDE, id="system file"),
    pytest.param(link("../../../models--b--m/snapshots/1/x"), OUTSIDE, id="other model"),
    pytest.param(link("../../../secret"), OUTSIDE, id="secret"),
    pytest.param(os.mkfifo, f"{REGULAR} a pipe: replace it", id="pipe"),
    pytest.param(link_to_pipe, f"{REGULAR} a pipe: replace it", id="link to a pipe"),
    pytest.param(circle, MISSING, id="circle"),
    pytest.param(link("absent"), MISSING, id="link to nothing"),
]
FOLDER = pytest.param(Path.mkdir, f"{REGULAR} a folder: replace it", id="folder")
LAYOUTS = [under_data, in_hub_cache]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Path of a snapshot in the hub's cache, next to another model and a secret."""
    own, other = (tmp_path / f"models--{name}--m/snapshots/1" for name in "ab")
    own.parent.mkdir(parents=True)
    other.mkdir(parents=True)
    (other / "x").write_text("other")
    (tmp_path / "secret").write_text("secret")
    return own


@pytest.mark.parametrize(("attack", "message"), [*ATTACKS, FOLDER])
@pytest.mark.parametrize(
    "load",
    [lambda root, name: files.read(root, root / name, 9), lambda r, n: files.regular(r, r / n)],
    ids=["read", "regular"],
)
def test_hostile_file_is_refused(
    place: Path, load: Load, attack: Callable[[Path], None], message: str
) -> None:
    place.mkdir()
    replaced(place / "f", attack)
    with pytest.raises(LoadError, match=f"^f {message}") as caught:
        load(place, "f")
    assert str(place.parent) not in str(caught.value)


@pytest.mark.parametrize("layout", [lambda _: None, *LAYOUTS])
def test_file_of_the_model_is_read_up_to_a_bound(
    place: Path, layout: Callable[[Path], None]
) -> None:
    place.mkdir()
    (place / "f").write_bytes(b"123456789")
    layout(place / "f")
    assert files.read(place, place / "f", 9) == b"123456789"
    assert files.regular(place, place / "f").read_bytes() == b"123456789"
    assert files.read(place, place / "absent", 9) is None
    with pytest.raises(LoadError, match=r"^f must have at most 8 bytes; got more: replace it"):
        files.read(place, place / "f", 8)


@pytest.mark.parametrize("layout", [in_another_cache, blobs_elsewhere])
def test_only_the_cache_of_the_same_model_is_read(
    place: Path, layout: Callable[[Path], None]
) -> None:
    place.mkdir()
    (place / "f").touch()
    layout(place / "f")
    with pytest.raises(LoadError, match=OUTSIDE):
        files.read(place, place / "f", 9)


def test_blobs_next_to_a_folder_that_is_no_snapshot_are_outside(tmp_path: Path) -> None:
    model = tmp_path / "a" / "snapshots" / "1"
    model.mkdir(parents=True)
    (model / "f").touch()
    in_hub_cache(model / "f")
    with pytest.raises(LoadError, match=OUTSIDE):
        files.read(model, model / "f", 9)


def text(model: Path) -> object:
    return load_text(model)


def weights(model: Path) -> object:
    return load_decoder(model, ExecutorOptions(), torch.device("cpu"), 1 << 20)


def described(model: Path) -> object:
    return folder.describe(model, model)


def described_weights(model: Path) -> object:
    return folder.weights(model, model, "model.safetensors")


LOADERS = [
    (text, "tokenizer.json"),
    (text, "tokenizer_config.json"),
    (text, "config.json"),
    (text, "generation_config.json"),
    (text, "chat_template.jinja"),
    (weights, "config.json"),
    (weights, "model.safetensors"),
    (weights, "model.safetensors.index.json"),
    (described, "model.toml"),
    (described_weights, "model.safetensors"),
]


@pytest.mark.parametrize(("attack", "message"), [*ATTACKS, FOLDER])
@pytest.mark.parametrize(("load", "name"), LOADERS)
def test_loader_refuses_a_hostile_file(
    place: Path,
    load: Callable[[Path], object],
    name: str,
    attack: Callable[[Path], None],
    message: str,
) -> None:
    write_random_llama(place)
    replaced(place / name, attack)
    with pytest.raises(LoadError, match=f"^{name} {message}"):
        load(place)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("load", [text, weights, described_weights])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_loader_takes_a_mounted_or_cached_model(
    place: Path, load: Callable[[Path], object], name: str, layout: Callable[[Path], None]
) -> None:
    write_random_llama(place)
    layout(place / name)
    load(place)
    assert model_folder(place) == place


@pytest.mark.parametrize(("attack", "message"), ATTACKS)
@pytest.mark.parametrize("name", ["model-00001-of-00001.safetensors", "vocab.json"])
def test_files_that_vllm_opens_are_checked_before_it_starts(
    place: Path, name: str, attack: Callable[[Path], None], message: str
) -> None:
    write_random_llama(place)
    attack(place / name)
    with pytest.raises(LoadError, match=f"^{name} {message}"):
        build_engine(configured({"model_uri": f"file://{place}", "engine": "vllm"}, {}))


def test_shard_that_leads_outside_is_refused(place: Path) -> None:
    write_random_llama(place)
    shard = place / "model-00001-of-00001.safetensors"
    (place / "model.safetensors").rename(place.parent / "away")
    index = {"weight_map": {"model.embed_tokens.weight": shard.name}}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    shard.symlink_to("../away")
    with pytest.raises(LoadError, match=f"^{shard.name} {OUTSIDE}"):
        weights(place)


def test_templates_folder_that_leads_outside_is_refused(place: Path, tmp_path: Path) -> None:
    write_random_llama(place)
    (tmp_path / "tool_use.jinja").write_text("secret")
    (place / "chat_template.jinja").write_text("plain")
    (place / "additional_chat_templates").symlink_to(tmp_path)
    with pytest.raises(LoadError, match=OUTSIDE):
        text(place)


def test_only_model_that_leads_outside_is_refused(tmp_path: Path) -> None:
    write_random_llama(tmp_path / "away")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m").symlink_to("../away")
    with pytest.raises(LoadError, match=f"^m {OUTSIDE}"):
        model_folder(tmp_path / "models")
    (finding,) = check(tmp_path / "models", trusted=False)
    assert OUTSIDE in str(finding)
