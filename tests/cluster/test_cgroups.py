"""Cgroups in both versions of the interface, on folders that look like them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import cgroups
from cluster.errors import ClusterError


@pytest.fixture
def v1(tmp_path: Path) -> Path:
    for controller in ("memory", "cpu,cpuacct", "cpuset"):
        (tmp_path / controller).mkdir()
    (tmp_path / "cpu").symlink_to("cpu,cpuacct")
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1\n")
    (tmp_path / "cpuset" / "cpuset.mems").write_text("0\n")
    return tmp_path


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu io\n")
    return tmp_path


def test_the_old_interface_has_a_group_per_controller(v1: Path) -> None:
    assert cgroups.is_v1(v1)
    cgroups.create("mine", v1)
    assert {path.parent.name for path in cgroups.present("mine", v1)} == {
        "memory",
        "cpu,cpuacct",
        "cpuset",
    }


def test_a_new_cpuset_gets_what_its_parent_has(v1: Path) -> None:
    cgroups.create("mine", v1)
    assert (v1 / "cpuset" / "mine" / "cpuset.cpus").read_text() == "0-1\n"
    assert (v1 / "cpuset" / "mine" / "cpuset.mems").read_text() == "0\n"


def test_the_new_interface_has_one_group_with_controllers_handed_down(v2: Path) -> None:
    assert not cgroups.is_v1(v2)
    cgroups.create("mine", v2)
    assert cgroups.present("mine", v2) == [v2 / "mine"]
    # A real file would add each word; this one holds the last that was written.
    assert (v2 / "cgroup.subtree_control").read_text() == "+pids"


def test_controllers_that_cannot_be_handed_down_are_named(v2: Path) -> None:
    (v2 / "cgroup.subtree_control").unlink()
    (v2 / "cgroup.subtree_control").symlink_to("/proc/self/cmdline")  # readable, never writable
    with pytest.raises(ClusterError, match="controller cpuset cannot be enabled"):
        cgroups.create("mine", v2)


def test_groups_are_removed_from_the_leaves_up(v2: Path) -> None:
    cgroups.create("mine", v2)
    (v2 / "mine" / "pods" / "one").mkdir(parents=True)
    assert cgroups.remove("mine", v2) == []
    assert cgroups.present("mine", v2) == []


def test_removing_what_is_not_there_is_no_error(v2: Path) -> None:
    assert cgroups.remove("mine", v2) == []
