"""A folder of models: found, selected and refused ones, and `headroom-server check`."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.engine import LoadError
from headroom_server.repository import folder, safetensors_header
from headroom_server.repository.checking import check
from headroom_server.repository.folder import Repository, chosen, scan
from headroom_server.repository.formats import Format, check_weights_name
from headroom_server.repository.safetensors_header import Held

MLP = "architecture = 'mlp'\n[parameters]\nsizes = [2, 3]\n"
TENSORS = {"0.weight": (3, 2), "0.bias": (3,)}


def safetensors(shapes: dict[str, tuple[int, ...]]) -> bytes:
    """FP32 zeros; as the format's description has it."""
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4
        for dimension in shape:
            size *= dimension
        header[name] = {"dtype": "F32", "shape": [*shape], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


def archive(*members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        for member in members:
            opened.writestr(member, b"{}")
    return file.getvalue()


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def mlp_at(place: str) -> dict[str, str | bytes]:
    return {f"{place}model.toml": MLP, f"{place}model.safetensors": safetensors(TENSORS)}


def test_folder_with_a_description_is_a_repository_of_one_model(tmp_path: Path) -> None:
    assert scan(write(tmp_path, mlp_at("")), "m").models == {"m": {1: tmp_path}}


def test_versions_are_integers_with_1_as_default(tmp_path: Path) -> None:
    files = mlp_at("bert/2/") | mlp_at("bert/10/") | mlp_at("resnet/")
    files |= {"bert/notes/readme": "", ".git/x": "", "lost+found/x": "", "README.md": ""}
    found = scan(write(tmp_path, files), "m")
    assert {name: list(versions) for name, versions in found.models.items()} == {
        "bert": [2, 10],
        "resnet": [1],
    }
    assert found.problems == {}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a/readme": ""}, "there is no model.toml here or in a version's folder"),
        ({"a/1/readme": ""}, "no model.toml"),
        ({"a/01/model.toml": MLP}, "no model.toml"),
        ({"a/0/model.toml": MLP}, "no model.toml"),
        ({"a/model.toml": MLP, "a/1/model.toml": MLP}, r"model.toml or versions; got both, \[1\]"),
    ],
)
def test_folder_without_a_model_is_a_problem_with_a_next_step(
    tmp_path: Path, files: dict[str, str | bytes], words: str
) -> None:
    found = scan(write(tmp_path, files), "m")
    assert found.models == {}
    with pytest.raises(LoadError, match=f"model a: .*{words}"):
        chosen(found, ())


def test_name_invalid_in_urls_is_a_problem(tmp_path: Path) -> None:
    assert "rename" in scan(write(tmp_path, mlp_at("a b/")), "m").problems["a b"]


def test_missing_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"got .*/no \(No such file or directory\): create it"):
        scan(tmp_path / "no", "m")
    with pytest.raises(LoadError, match="Not a directory"):
        scan(write(tmp_path, {"file": ""}) / "file", "m")


A, B = Path("/r/a"), Path("/r/b")
TWO = Repository(Path("/r"), {"a": {1: A, 12: A}, "b": {3: B}}, {})


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ((), {"a": {12: A}, "b": {3: B}}),
        (("a",), {"a": {12: A}}),
        (("a:1",), {"a": {1: A}}),
        (("a:1", "a"), {"a": {1: A, 12: A}}),
        (("b", "a:1"), {"b": {3: B}, "a": {1: A}}),
    ],
)
def test_latest_version_is_served_by_default(
    wanted: tuple[str, ...], found: dict[str, dict[int, Path]]
) -> None:
    assert chosen(TWO, wanted) == found


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("c", r"the repository has no model 'c'; it has \['a', 'b'\]"),
        ("a:2", r"model a has no version '2'; it has \[1, 12\]"),
        ("a:latest", "no version 'latest'"),
        ("a:01", "no version '01'"),
        ("../a", r"no model '../a'"),
        ("a:../b", "no version"),
    ],
)
def test_missing_model_or_version_is_refused(wanted: str, words: str) -> None:
    with pytest.raises(LoadError, match=words):
        chosen(TWO, (wanted,))
    with pytest.raises(LoadError, match="the repository contains no model: add"):
        chosen(Repository(Path("/r"), {}, {}), ())


def test_links_are_followed_only_inside_the_repository(tmp_path: Path) -> None:
    root = write(tmp_path / "repository", mlp_at("..data/") | mlp_at("shared/"))
    outside = write(tmp_path / "outside", mlp_at(""))
    # as a ConfigMap is mounted
    (root / "a").mkdir()
    for name in ("model.toml", "model.safetensors"):
        (root / "a" / name).symlink_to(f"../..data/{name}")
    assert folder.weights(root, root / "a", "model.safetensors").is_file()
    assert folder.describe(root, root / "a").architecture == "mlp"
    (root / "b").symlink_to(outside)
    assert "must be inside the repository" in scan(root, "m").problems["b"]
    (root / "shared" / "away.safetensors").symlink_to(outside / "model.safetensors")
    with pytest.raises(LoadError, match=r"^away.safetensors must be inside the repository"):
        folder.weights(root, root / "shared", "away.safetensors")
    with pytest.raises(LoadError, match="must be inside the repository"):
        folder.weights(root, root / "shared", "../../outside/model.safetensors")
    (root / "shared" / "circle").symlink_to("circle")
    with pytest.raises(LoadError, match="circle does not exist or cannot be read"):
        folder.weights(root, root / "shared", "circle")
    with pytest.raises(LoadError, match="must be a regular file"):
        folder.weights(root, root, "shared")


@given(st.text(max_size=20).map(lambda text: f"{text}.safetensors"))
def test_accepted_weights_name_is_next_to_the_description(name: str) -> None:
    try:
        check_weights_name(name, Format.SAFETENSORS)
    except ValueError:
        return
    beside = Path("/repository/model")
    assert (beside / name).parent == beside
    assert Path(os.path.normpath(beside / name)).parent == beside


def test_check_of_a_valid_repository_prints_a_line_per_model(tmp_path: Path) -> None:
    files = mlp_at("bert/1/") | mlp_at("bert/2/") | {"emulated/model.toml": "engine = 'emulated'"}
    digest = hashlib.sha256(safetensors(TENSORS)).hexdigest()
    files["bert/2/model.toml"] = (
        f"sha256 = '{digest}'\nbatches = [1, 4]\n{MLP}[[warm_up]]\ninputs = {{ x = [1, 2] }}"
    )
    findings = check(write(tmp_path, files), trusted=False)
    assert [str(finding) for finding in findings] == [
        "ok     bert/1: mlp",
        "ok     bert/2: mlp, batches [1, 4]",
        "ok     emulated/1: emulated: a device that only spends time",
    ]


EXPORTED = archive("archive/models/model.json", "archive/data/weights/weight_0")
COMPILED = archive("m/data/aotinductor/model/c.wrapper.so")


def program(kind: str, data: bytes) -> str:
    return (
        f"format = '{kind}'\nsha256 = '{hashlib.sha256(data).hexdigest()}'\n"
        "inputs = [{name='x', datatype='FP32', shape=[2]}]\n"
        "outputs = [{name='y', datatype='FP32'}]\n"
    )


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"model.toml": f"weights = 'w.safetensors'\n{MLP}"},
            ["w.safetensors does not exist", "add the file"],
        ),
        ({"model.toml": "x = 1"}, ["x: unknown field"]),
        (
            {"model.toml": "architecture = 'gpt'"},
            ["must be one of ['convnet', 'mlp'], or module:Class"],
        ),
        (
            {"model.toml": MLP.replace("2", "'2'")},
            ["mlp takes (*, sizes", "sizes must be two or more"],
        ),
        ({"model.toml": f"sha256 = '{'0' * 64}'\n{MLP}"}, ["pins 0000", "find out who changed"]),
        ({"model.safetensors": safetensors({"0.weight": (3, 2)})}, ["missing ['0.bias']"]),
        (
            {"model.safetensors": safetensors({"0.weight": (2, 3), "0.bias": (3,)})},
            ["0.weight: shape must be [3, 2] with these parameters; got [2, 3]"],
        ),
        ({"model.safetensors": safetensors(TENSORS)[:-1]}, ["36 bytes of numbers; got 35"]),
        ({"model.safetensors": b"\x80\x04}."}, ["is not a safetensors file"]),
        (
            {"model.toml": MLP + "[[warm_up]]\ninputs = { x = [1, 2, 3] }"},
            ["warm_up[0].inputs.x: axis 0 must have 2 elements for shape [2]"],
        ),
        (
            {
                "model.toml": MLP + "[[inputs]]\nname='x'\ndatatype='FP64'\nshape=[2]\n"
                "[[outputs]]\nname='y'\ndatatype='FP32'\nshape=[3]"
            },
            ["inputs must be those of the model, x FP32 [2]; got x FP64 [2]"],
        ),
        ({"model.toml": "architecture = 'no_such_module:M'"}, ["put the folder", "PYTHONPATH"]),
        ({"model.toml": "architecture = 'json:Model'"}, ["HEADROOM_REPOSITORY_TRUSTED=true"]),
        (
            {"model.toml": program("export", EXPORTED), "model.pt2": COMPILED},
            ["HEADROOM_REPOSITORY_TRUSTED=true", "pins"],
        ),
    ],
)
def test_check_reports_each_mistake_with_a_next_step(
    tmp_path: Path, files: dict[str, str | bytes], words: list[str]
) -> None:
    (finding,) = check(write(tmp_path, mlp_at("") | files), trusted=False)
    line = str(finding)
    assert line.startswith("wrong  model/1: ")
    assert all(word in line for word in words), line
    assert str(tmp_path) not in line


@pytest.mark.parametrize("under", ["", "chat-8b"])
def test_check_of_a_language_model_says_how_it_is_served(tmp_path: Path, under: str) -> None:
    where = tmp_path / under
    where.mkdir(exist_ok=True)
    for name in ("config.json", "tokenizer.json"):
        (where / name).write_text("{}")
    (finding,) = check(tmp_path, trusted=False)
    assert finding.sound
    assert str(finding).startswith(f"ok     {where}: a language model, served by generating text")


@pytest.mark.parametrize(
    ("kind", "data", "line"),
    [
        ("export", EXPORTED, "ok     model/1: format export"),
        ("aotinductor", COMPILED, "ok     model/1: format aotinductor"),
        (
            "export",
            COMPILED,
            "wrong  model/1: model.pt2 contains a program of format 'aotinductor'",
        ),
        (
            "aotinductor",
            EXPORTED,
            "wrong  model/1: model.pt2 contains a program of format 'export'",
        ),
        ("export", archive("x"), "wrong  model/1: model.pt2 contains no program"),
        ("export", b"PK\x03\x04", "wrong  model/1: model.pt2 is not a .pt2 archive"),
    ],
)
def test_check_compares_programs_with_their_format(
    tmp_path: Path, kind: str, data: bytes, line: str
) -> None:
    write(tmp_path, {"model.toml": program(kind, data), "model.pt2": data})
    (finding,) = check(tmp_path, trusted=True)
    assert str(finding).startswith(line)


def test_check_command_sets_the_exit_code_without_torch(tmp_path: Path) -> None:
    write(tmp_path, mlp_at("a/"))
    command = "import sys; from headroom_server.cli import main; code = main(sys.argv[1:]); "
    command += "sys.exit(9 if {'torch', 'safetensors'} & set(sys.modules) else code)"

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", command, *arguments], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    assert run("check", str(tmp_path)) == (0, "ok     a/1: mlp\n")
    (tmp_path / "a" / "model.toml").write_text("")
    code, reply = run("check", str(tmp_path))
    assert (code, reply) == (
        1,
        "wrong  a/1: model.toml: architecture is required: a registered name, or module:Class\n",
    )
    code, reply = run("check", str(tmp_path), "--strict")
    assert code == 2
    assert "unrecognized arguments: --strict" in reply


def test_check_does_not_find_classes_of_main(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text("architecture = '__main__:Model'")
    # only a program that was not started as a module has a __main__ without a spec
    code = "import sys; from pathlib import Path; from headroom_server.repository import checking; "
    code += "print(*checking.check(Path(sys.argv[1]), trusted=False))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, timeout=30
    )
    assert b"__main__:Model cannot be imported here" in done.stdout


@given(st.binary(max_size=60), st.integers(0, 200))
def test_arbitrary_safetensors_header_is_parsed_or_refused(noise: bytes, at: int) -> None:
    file = bytearray(safetensors(TENSORS))
    file[at : at + len(noise)] = noise
    found = header_of(bytes(file))
    assert isinstance(found, str) or all(isinstance(one, Held) for one in found.values())


def header_of(file: bytes) -> dict[str, Held] | str:
    try:
        length = safetensors_header.header_bytes(file[:8], "w")
        return safetensors_header.parse(file[8 : 8 + length], len(file), "w")
    except LoadError as error:
        return str(error)


@pytest.mark.parametrize("shape", [[2**62] * 100_000, [2**63]], ids=["dimensions", "size"])
def test_safetensors_header_with_impossible_shapes_is_refused_before_they_are_multiplied(
    shape: list[int],
) -> None:
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}
    header = json.dumps({"a": entry}).encode()
    found = header_of(len(header).to_bytes(8, "little") + header + bytes(4))
    assert found == "w has no valid safetensors header: write it again"


def test_safetensors_header_has_types_and_shapes() -> None:
    assert header_of(safetensors(TENSORS)) == {
        "0.weight": Held("F32", (3, 2)),
        "0.bias": Held("F32", (3,)),
    }
