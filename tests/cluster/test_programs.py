"""Programs outside Python: versions are read right, and failures say what happened."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cluster.cli import app, pairs
from cluster.commands import environment, run, tail
from cluster.errors import ClusterError
from cluster.images import buildah
from cluster.interface import wait_until
from cluster.tools.golang import parse_version


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26)),
        ("go version go1.27rc1 linux/arm64", (1, 27)),
        ("go version devel +abc linux/amd64", None),
        ("", None),
    ],
)
def test_the_version_of_go(said: str, version: tuple[int, int] | None) -> None:
    assert parse_version(said) == version


def test_a_failing_program_is_quoted_with_its_step() -> None:
    with pytest.raises(ClusterError, match=r"trying: sh ended with status 3:\nno luck"):
        run(["sh", "-c", "echo no luck >&2; exit 3"], what="trying")


def test_a_missing_program_is_named() -> None:
    with pytest.raises(ClusterError, match="no-such-program is not on this machine"):
        run(["no-such-program"], what="trying")


def test_a_slow_program_is_cut_off() -> None:
    with pytest.raises(ClusterError, match=r"not done within 0\.05 s"):
        run(["sleep", "5"], what="waiting", timeout_s=0.05)


def test_tail_drops_the_first_lines() -> None:
    assert tail("1\n2\n3", lines=2) == "2\n3"


def test_system_folders_are_on_the_path() -> None:
    assert "/usr/sbin" in environment()["PATH"].split(":")
    assert environment({"KEY": "value"})["KEY"] == "value"


def test_wait_returns_the_value_or_names_what_is_missing() -> None:
    answers = iter([None, "", "found"])
    assert wait_until(lambda: next(answers), what="it", timeout_s=5, every_s=0) == "found"
    with pytest.raises(ClusterError, match="it: not within 0 s"):
        wait_until(lambda: None, what="it", timeout_s=0)


MOUNTS = """overlay / overlay rw 0 0
/dev/vda /data ext4 rw 0 0
tmpfs /data/deep tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me/.cache", "overlay"),
        ("/data/x", "ext4"),
        ("/data/deep/x", "tmpfs"),
        ("/database", "overlay"),
    ],
)
def test_the_file_system_of_a_folder(folder: str, kind: str) -> None:
    assert buildah.file_system_of(folder, MOUNTS) == kind


@pytest.mark.parametrize(
    "verb", ["setup", "up", "down", "status", "kubectl", "enter", "image", "load", "logs"]
)
def test_every_verb_has_help(verb: str) -> None:
    result = CliRunner().invoke(app, [verb, "--help"])
    assert result.exit_code == 0
    assert verb in result.output


def test_a_build_argument_without_a_value_is_refused() -> None:
    assert pairs(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}
    with pytest.raises(ClusterError, match="KEY=VALUE; got 'A'"):
        pairs(["A"])
