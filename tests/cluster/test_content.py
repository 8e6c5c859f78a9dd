"""Content keys: equal for equal inputs, different for anything that differs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.content import key_of, key_of_files
from cluster.images.builds import context_files, copied_sources, file_name, targets

PARTS = st.dictionaries(st.text(max_size=8), st.binary(max_size=16), max_size=4)


@given(one=PARTS, other=PARTS)
def test_keys_are_equal_only_for_equal_parts(
    one: dict[str, bytes], other: dict[str, bytes]
) -> None:
    assert (key_of(one) == key_of(other)) == (one == other)


def test_parts_do_not_run_into_each_other() -> None:
    assert key_of({"a": "bc"}) != key_of({"ab": "c"})
    assert key_of({"a": "b", "c": "d"}) != key_of({"a": "b1:c1:d"})


def test_the_order_of_parts_does_not_matter() -> None:
    assert key_of({"a": "1", "b": "2"}) == key_of({"b": "2", "a": "1"})


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a.txt").write_text("other"),
        lambda root: (root / "a.txt").chmod(0o755),
        lambda root: (root / "a.txt").rename(root / "b.txt"),
    ],
    ids=["content", "mode", "name"],
)
def test_a_key_of_files_sees_content_mode_and_name(change: object, tmp_path: Path) -> None:
    assert callable(change)
    (tmp_path / "a.txt").write_text("text")
    before = key_of_files(tmp_path, tmp_path.iterdir(), {})
    change(tmp_path)
    assert key_of_files(tmp_path, tmp_path.iterdir(), {}) != before


def test_a_key_of_files_does_not_depend_on_where_they_lie(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("text")
    keys = {
        key_of_files(tmp_path / name, (tmp_path / name).iterdir(), {}) for name in ("here", "there")
    }
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("dockerfile", "sources"),
    [
        ("FROM x\nRUN true\n", set()),
        ("COPY a.lock /tmp/\n", {"a.lock"}),
        ("COPY --chown=1:1 a b/c /tmp/\n", {"a", "b/c"}),
        ("copy ./src/ /src\n", {"src"}),
        ("COPY a \\\n  b /tmp/\n", {"a", "b"}),
        ("COPY --from=build /out /out\n", set()),
        ("ADD . /src\n", {"."}),
        ("COPY src/*.py /src\n", {"."}),
        ("COPY ${WHAT} /src\n", {"."}),
        ('COPY ["a", "b"]\n', {"."}),
        ("RUN --mount=type=bind,source=a true\n", {"."}),
        ("# COPY a b\n", set()),
    ],
)
def test_what_a_dockerfile_copies(dockerfile: str, sources: set[str]) -> None:
    assert copied_sources(dockerfile) == sources


def test_a_context_is_what_git_sees_of_what_is_copied(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for name in (".dockerignore", "src/a.py", "src/a.pyc", "src/deep/b.py", "srcs/c.py", "d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    found = context_files(tmp_path, "COPY src /src\n")
    assert [path.relative_to(tmp_path).as_posix() for path in found] == [
        ".dockerignore",
        "src/a.py",
        "src/deep/b.py",
    ]


def test_an_image_name_becomes_a_file_name() -> None:
    assert file_name("localhost/headroom-model-server:dev") == "localhost_headroom-model-server_dev"


def test_each_named_stage_is_built_under_a_name_before_the_image() -> None:
    dockerfile = "ARG BASE\nFROM ${BASE} AS build\nRUN x\nFROM ${BASE}\nCOPY --from=build /a /a\n"
    assert targets("app:dev", dockerfile) == [("build", "app:dev-build"), ("", "app:dev")]
    assert targets("app:dev", "FROM base\n") == [("", "app:dev")]
