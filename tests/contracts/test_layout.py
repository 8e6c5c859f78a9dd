"""The tree is the architecture: names and files that must not appear in it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("operator/headroom", "model_server/headroom_server")
SOURCES = sorted(
    path
    for folder in (*PACKAGES, "e2e")
    for path in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in path.parts
)
MOST_LINES = 500
MOST_ENGINE_LINES = 2500
MOST_UNSORTED = 20
"""Modules of a package whose docstring need not say which of them belong together."""
ONE_PER_SYSTEM = {"profiles"}
IMPURE = {
    "aiohttp", "asyncio", "kopf", "kubernetes", "logging", "os", "random", "secrets", "signal",
    "socket", "ssl", "subprocess", "tempfile", "threading", "time",
}  # fmt: skip
"""No module whose first line ends with "Pure." imports one of these."""
TOP = {
    "pyproject.toml", "README.md", "Makefile", "LICENSE", "requirements.lock",
    "operator", "model_server", "deploy", "charts", "tests", "e2e",
}  # fmt: skip


@pytest.mark.parametrize("folder", ["operator", "model_server", "e2e"])
def test_folder_that_would_shadow_module_is_no_package(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


def test_top_level_has_only_known_entries() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    top = {name.split("/")[0] for name in listed}
    assert {name for name in top if not name.startswith(".")} <= TOP


def test_module_names_avoid_standard_library_and_catch_alls() -> None:
    forbidden = {*sys.stdlib_module_names, "utils", "common", "helpers", "misc", "kubernetes"}
    offenders = [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.stem in forbidden and not path.stem.startswith("__")
    ]
    assert offenders == []


def test_module_has_docstring_and_bounded_length() -> None:
    offenders = []
    for path in SOURCES:
        text = path.read_text()
        job, *_ = (ast.get_docstring(ast.parse(text)) or "").splitlines() or [""]
        if not job.endswith((".", ":", "?")):
            offenders.append(f"{path.relative_to(ROOT)} begins with {job!r}")
        lines = len(text.splitlines())
        if lines > MOST_LINES:
            offenders.append(f"{path.relative_to(ROOT)} has {lines} lines")
    assert offenders == []


def test_pure_module_says_so_at_the_end_of_its_first_line_and_imports_no_clock_or_io() -> None:
    offenders = []
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        first, _, rest = (ast.get_docstring(tree) or "").partition("\n")
        if re.search(r"\b(Pure|PURE)\b", f"{first.removesuffix(' Pure.')} {rest}"):
            offenders.append(f"{path.relative_to(ROOT)} says it elsewhere, or in another way")
        if first.endswith(" Pure."):
            found = sorted(_imported(tree) & IMPURE)
            offenders += [f"{path.relative_to(ROOT)} imports {module}" for module in found]
    assert offenders == []


def _imported(tree: ast.Module) -> set[str]:
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_large_package_says_which_modules_belong_together() -> None:
    missing = []
    for package in (*PACKAGES, "e2e"):
        for page in (ROOT / package).rglob("__init__.py"):
            modules = {path.stem for path in page.parent.glob("*.py")} - {"__init__", "__main__"}
            if len(modules) <= MOST_UNSORTED or page.parent.name in ONE_PER_SYSTEM:
                continue
            named = set(re.findall(r"\w+", ast.get_docstring(ast.parse(page.read_text())) or ""))
            missing += [f"{page.parent.name}: {module}" for module in sorted(modules - named)]
    assert missing == []


def test_copies_in_operator_and_model_server_are_the_same() -> None:
    """The two are separate distributions, and neither imports the other."""
    copies = (
        ROOT / "operator/headroom/activator/hpack_fields.py",
        ROOT / "model_server/headroom_server/open_inference_grpc/hpack_fields.py",
    )
    first, second = (path.read_text() for path in copies)
    assert first == second, "a change of one copy must be made in both; copy the file"


def test_our_generation_engine_is_small() -> None:
    engine = ROOT / "model_server/headroom_server/torch_generation"
    lines = sum(len(path.read_text().splitlines()) for path in engine.rglob("*.py"))
    assert lines <= MOST_ENGINE_LINES


def test_locks_pin_with_hashes_and_name_no_index() -> None:
    locks = [ROOT / "requirements.lock", *(ROOT / "deploy").glob("*.lock")]
    assert len(locks) >= 4
    for lock in locks:
        text = lock.read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
        assert "index-url" not in text


def test_image_locks_match_the_tested_lock() -> None:
    def pins(lock: Path) -> set[str]:
        lines = lock.read_text().splitlines()
        return {line.split(" ")[0] for line in lines if "==" in line and line[0].isalnum()}

    everything = pins(ROOT / "requirements.lock")
    for lock in (ROOT / "deploy").glob("*.lock"):
        assert pins(lock) <= everything, lock.name
