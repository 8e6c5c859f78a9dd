"""Documents match the code: commands, manifests, links and names are checked."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from headroom.api import InferenceService
from headroom.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)?(#[^)\s]+)?\)")


def blocks(kind: str) -> list[tuple[str, str]]:
    return [
        (page.relative_to(ROOT).as_posix(), text)
        for page in PAGES
        for found, text in _BLOCK.findall(page.read_text(encoding="utf-8"))
        if found == kind
    ]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


HEADROOM_COMMAND = "$ headroom "
CUT = "\n...\n"
"""Ends a block that shows the beginning of an output."""


@pytest.mark.parametrize(
    ("page", "text"),
    [(page, text) for page, text in blocks("console") if text.startswith(HEADROOM_COMMAND)],
)
def test_console_block_matches_command_output(page: str, text: str) -> None:
    command, _, shown = text.removeprefix(HEADROOM_COMMAND).partition("\n")
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == 0, done.output
    printed = "\n".join(line.rstrip() for line in done.output.strip("\n").splitlines())
    beginning, cut, _ = shown.partition(CUT)
    assert printed.startswith(beginning) if cut else printed == shown.rstrip("\n"), page


@pytest.mark.parametrize(("page", "text"), blocks("yaml"))
def test_inference_service_in_document_parses(page: str, text: str) -> None:
    for document in yaml.safe_load_all(text):
        if document.get("kind") == "InferenceService":
            metadata = {"namespace": "default", "uid": "shown"} | document["metadata"]
            InferenceService.parse(document | {"metadata": metadata})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    for file, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        if file.startswith(("http://", "https://", "mailto:")):
            continue
        target = page.parent / file if file else page
        assert target.exists(), f"{file} does not exist"
        if anchor and target.suffix == ".md":
            assert anchor[1:] in anchors(target), f"{file}{anchor} does not exist"


@pytest.mark.parametrize(
    ("package", "page"),
    [("headroom", "operator/REFERENCE.md"), ("headroom_server", "model_server/REFERENCE.md")],
)
def test_reference_page_matches_generated_reference(package: str, page: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", package, "reference"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == (ROOT / page).read_text(encoding="utf-8"), "run `make reference`"


HEADROOM = ROOT / "operator/headroom"
_CODE = re.compile(r"`([^`]+)`")
_PATH = re.compile(r"[\w./-]+(\.py|/)")


def path_exists(path: str) -> bool:
    return any((base / path).exists() for base in (ROOT, HEADROOM, HEADROOM / "controller"))


def test_glossary_names_exist() -> None:
    reference = (ROOT / "operator/REFERENCE.md").read_text()
    page = (ROOT / "operator/guide/GLOSSARY.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    names = [name for row in rows for name in _CODE.findall(row.rsplit("|", 2)[1])]
    assert len(names) > 60
    assert [name for name in names if not (path_exists(name) or f"`{name}`" in reference)] == []


@pytest.mark.parametrize("page", ["operator/DESIGN.md", "operator/RELIABILITY.md"])
def test_modules_and_tests_named_in_page_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    bases = [ROOT / "tests", ROOT / "e2e/scenarios", HEADROOM / "scaling"]
    paths = [name for name in _CODE.findall(text) if _PATH.fullmatch(name) and "/" in name]
    assert len(paths) > 20
    missing = [
        one for one in paths if not (path_exists(one) or any((b / one).exists() for b in bases))
    ]
    assert missing == [], f"rename them in {page}"


def test_modules_named_in_pages_exist() -> None:
    """A page may leave out the first folders; the changelog names what was there once."""
    folders = ("operator", "model_server", "e2e", "tests", "deploy")
    modules = [
        f"/{one.relative_to(ROOT)}" for name in folders for one in (ROOT / name).rglob("*.py")
    ]
    named = {
        (page.relative_to(ROOT).as_posix(), name)
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"(?<![\w/*.-])(?!vllm/)\w+(?:/\w+)+\.py\b", page.read_text())
    }
    assert len(named) > 200
    ends = {name: any(one.endswith(f"/{name}") for one in modules) for _, name in named}
    assert sorted(one for one in named if not ends[one[1]]) == [], "rename them"


def test_readme_and_design_stay_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
    assert len((ROOT / "operator/DESIGN.md").read_text().split()) <= 5000


LIVES = ["operator/guide/LIFE_OF_A_TICK.md", "operator/guide/LIFE_OF_A_REQUEST.md"]
_STEP = re.compile(r"^\| .+ \| `([\w/]+\.py)` \|(?: `([\w.]+)`)? \|$", re.MULTILINE)


def definitions(module: Path) -> set[str]:
    """Functions, classes and methods of a module, methods with their class."""
    found = set()
    for node in ast.parse(module.read_text()).body:
        name = getattr(node, "name", "")
        found.add(name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{name}.{getattr(inner, 'name', '')}" for inner in node.body}
    return found


@pytest.mark.parametrize("page", LIVES)
def test_life_page_names_existing_functions(page: str) -> None:
    text = (ROOT / page).read_text()
    steps = _STEP.findall(text)
    assert len(steps) == len(re.findall(r"^\| (?!what)", text, re.MULTILINE))
    missing = []
    for path, name in steps:
        bases = (HEADROOM, ROOT / "model_server/headroom_server")
        module = next((base / path for base in bases if (base / path).exists()), None)
        if module is None or (name and name not in definitions(module)):
            missing.append(f"{path} {name}")
    assert missing == [], f"rename them in {page}"


@pytest.mark.parametrize("folder", ["operator/decisions", "model_server/decisions"])
def test_index_of_decisions_has_each_record_once_with_its_state(folder: str) -> None:
    index = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    changes = {"Revises": "Revised by", "Supersedes": "Superseded by"}
    for record in (ROOT / folder).glob("[0-9]*.md"):
        title, _, head, *_ = record.read_text(encoding="utf-8").split("\n")
        number = int(record.name[:3])
        rows = [row for row in index.split("\n") if f"]({record.name})" in row]
        assert len(rows) == 1, record.name
        assert f"| {number} | [{title.partition('. ')[2]}]" in rows[0]
        for change, changed in changes.items():
            assert (changed.lower() in rows[0]) == head.startswith(changed), record.name
            if head.startswith(change):
                for older in re.findall(r"\((\d{3}[^)]*)\)", head.partition(". ")[0]):
                    text = (ROOT / folder / older).read_text(encoding="utf-8")
                    assert re.search(rf"^{changed}.*\({record.name}\)", text, re.MULTILINE), older
