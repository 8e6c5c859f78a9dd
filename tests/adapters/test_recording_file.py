"""A recording is continued, bounded, and never blocks the caller."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headroom.adapters.recording_file import MOST_BEHIND, RecordingFile

pytestmark = pytest.mark.clock

HEADER = '{"kind":"recording"}\n'


def recording(path: Path, most_bytes: int = 10_000) -> RecordingFile:
    return RecordingFile(path, header=HEADER, most_bytes=most_bytes)


def refused(append: Callable[[], None]) -> str:
    """Append until an error; the disk's error arrives later."""
    deadline_s = time.monotonic() + 5.0
    while time.monotonic() < deadline_s:
        try:
            append()
        except OSError as error:
            return str(error)
        time.sleep(0.001)
    raise AssertionError("nothing was refused")


def descriptor_of(path: Path) -> int:
    """Return the file's descriptor, to replace it."""
    open_files = Path("/proc/self/fd").iterdir()
    return next(int(one.name) for one in open_files if one.resolve() == path.resolve())


def test_lines_follow_the_header_in_order(tmp_path: Path) -> None:
    with recording(tmp_path / "j") as lines:
        for number in range(500):
            lines.append(f"{number}\n")
    written = (tmp_path / "j").read_text()
    assert written == HEADER + "".join(f"{number}\n" for number in range(500))


def test_thread_is_named_for_what_it_writes(tmp_path: Path) -> None:
    with recording(tmp_path / "j"):
        assert "recording" in {one.name for one in threading.enumerate()}


def test_line_is_written_while_the_file_is_open(tmp_path: Path) -> None:
    with recording(tmp_path / "j") as lines:
        lines.append("one\n")
        deadline_s = time.monotonic() + 5.0
        while (tmp_path / "j").read_text() != HEADER + "one\n":
            assert time.monotonic() < deadline_s
            time.sleep(0.001)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", HEADER),
        (HEADER[:7], HEADER),
        (HEADER, HEADER),
        (HEADER + "one\n", HEADER + "one\n"),
        (HEADER + "one\n{half", HEADER + "one\n"),
        (HEADER + "one\n" * 40_000 + "tw", HEADER + "one\n" * 40_000),
    ],
    ids=["empty", "cut header", "header", "whole lines", "cut line", "long"],
)
def test_existing_recording_is_continued(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "j").write_text(before)
    with recording(tmp_path / "j", most_bytes=1_000_000) as lines:
        lines.append("more\n")
    assert (tmp_path / "j").read_text() == after + "more\n"


def test_file_of_another_format_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("arrival_s\n1\n2\n3\n4\n5\n6\n7\n8\n")
    with pytest.raises(OSError, match=r"begins with b'arrival_s.*name another file"):
        recording(tmp_path / "j").__enter__()
    assert (tmp_path / "j").read_text() == "arrival_s\n1\n2\n3\n4\n5\n6\n7\n8\n"


@pytest.mark.parametrize("place", ["absent/j", "."])
def test_unwritable_path_is_named(tmp_path: Path, place: str) -> None:
    with pytest.raises(OSError, match=r"the recording.s file must be writable") as error:
        recording(tmp_path / place).__enter__()
    assert str(tmp_path) in str(error.value)


def test_file_never_exceeds_its_bound(tmp_path: Path) -> None:
    most = len(HEADER) + 9
    for _ in range(2):
        with recording(tmp_path / "j", most_bytes=most) as lines:
            assert f"its limit of {most} bytes" in refused(lambda: lines.append("four\n"))
    assert (tmp_path / "j").read_text() == HEADER + "four\n"


def test_full_disk_is_reported_at_the_next_append(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_text(HEADER)
    with recording(path) as lines:
        broken = os.open("/dev/full", os.O_WRONLY)
        mine = descriptor_of(path)
        os.dup2(broken, mine)
        os.close(broken)
        assert "No space left on device" in refused(lambda: lines.append("one\n"))
    assert path.read_text() == HEADER


def test_hanging_disk_does_not_block(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_text(HEADER)
    reading, writing = os.pipe()
    begun_s = time.monotonic()
    with recording(path, most_bytes=1 << 40) as lines:
        mine = descriptor_of(path)
        os.dup2(writing, mine)  # a pipe without a reader takes some 64 KiB and then no more
        text = "x" * 1000 + "\n"
        for _ in range(MOST_BEHIND):
            lines.append(text)
        said = refused(lambda: lines.append(text))
        assert f"{MOST_BEHIND} texts are queued" in said
        assert time.monotonic() - begun_s < 5.0
        os.close(reading)
        os.close(writing)
