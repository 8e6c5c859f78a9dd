"""Text, docstrings, comments and names use plain technical English: no banned phrases.

The list and its replacements are in operator/guide/STYLE.md. To see every hit below some paths:

    python tests/contracts/test_language.py operator/headroom/scaling README.md
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

_BANNED = (
    r"anew",
    r"who(m)?ever",
    r"nobody('s)?",
    r"somebody('s)?",
    r"befall(s|en)?",
    r"what stands",
    r"stands in",
    r"as it stands",
    r"(is|are|be|was|were) told",
    r"told (to|of)",
    r"heard",
    r"beside",
    r"by itself",
    r"mend(s|ed|ing)?",
    r"of late(?! requests)",
    r"its own words",
    r"in words",
    r"for ever",
    r"knock(s|ed)?",
    r"turned away",
    r"left behind",
    r"what is asked for",
    r"believe[sd]?",
    r"everybody('s)?",
    r"anybody('s)?",
    r"wear(s|ing)?",
    r"wore",
    r"wish(es|ed)?",
    r"dearer?",
    r"strangers?('s)?",
    r"dawdl\w*",
    r"lulls?",
    r"reckon\w*",
    r"(?<!next )(?<!open )(?<!closed )doors?",
    r"(?<!of )(?<!Of )courses?",
    r"(?<!Little's )(?<!Amdahl's )(?<!power )(?<!square-root )laws?",
)
_PHRASE = re.compile(
    r"\b(" + "|".join(_BANNED) + r")\b|, received (?!or\b|and\b|reported)", re.IGNORECASE
)
HEADLESS = "Of "
"""A docstring that begins so does not name what it describes."""
_FRAGMENT = re.compile(r"(What|When|Which|How|Where|Who|Why) ")
"""A docstring of a module, class or function that begins so does not say its job."""
_ATTRIBUTE_FRAGMENT = re.compile(
    r"(What|Which|How|Who|Whose|That|Those|When|Why|Where|Until|By|As) "
)
"""Beginning of a docstring that does not name the attribute's value."""
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|[.#][\w-]+(?= )|\"#?[\w-]+\"|'#[^']*'")
"""Inline code, addresses of links, selectors and identifiers in quotes."""
_ALL_LITERALS = ("operator/headroom/", "model_server/headroom_server/", "e2e/", "tests/")
_COMMENT = re.compile(r"(?:^|\s)#\s(.*)$")
_WORDS = re.compile(r"_+|(?<=[a-z])(?=[A-Z])")
"""Separators of the words of a function's or a class's name."""
_TEXT = (".md", ".txt", ".yaml", ".toml", ".css", ".js", ".html")
_WRITTEN_ELSEWHERE = ("/LICENSE", "/traces/", "telemetry/pages/")


@dataclass(frozen=True)
class Hit:
    """One banned phrase."""

    path: str
    line: int
    phrase: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.phrase!r} in {self.text!r}"


def hits_in_lines(path: str, lines: list[str]) -> Iterator[Hit]:
    for number, line in enumerate(lines, 1):
        prose = _CODE.sub("", line)
        for found in _PHRASE.finditer(prose):
            yield Hit(path, number, found.group().lower(), line.strip()[:90])


def hits_in_python(path: str, source: str) -> Iterator[Hit]:
    tree = ast.parse(source)
    everything = path.startswith(_ALL_LITERALS)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for number, line in enumerate(source.splitlines(), 1):
        if "#" in line and (comment := _COMMENT.search(line)):
            for hit in hits_in_lines(path, [comment[1]]):
                yield replace(hit, line=number)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = _WORDS.sub(" ", node.name).replace("littles law", "Little's law")
            for hit in hits_in_lines(path, [name]):
                yield replace(hit, line=node.lineno)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            described = str(node.value.value)
            if described.startswith(HEADLESS):
                yield Hit(path, node.lineno, HEADLESS, described.splitlines()[0][:90])
            fragments = _FRAGMENT if id(node.value) in docstrings else _ATTRIBUTE_FRAGMENT
            if fragment := fragments.match(described):
                yield Hit(path, node.lineno, fragment[0], described.splitlines()[0][:90])
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if id(node) not in docstrings and not (everything and " " in node.value.strip()):
            continue
        for hit in hits_in_lines(path, node.value.splitlines()):
            yield Hit(path, node.lineno + hit.line - 1, hit.phrase, hit.text)


@cache
def all_hits() -> tuple[Hit, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    found: list[Hit] = []
    for path in sorted(listed):
        file = ROOT / path
        if not file.is_file() or any(part in f"/{path}" for part in _WRITTEN_ELSEWHERE):
            continue
        if path.endswith(".py") and path != "tests/contracts/test_language.py":
            found += hits_in_python(path, file.read_text(encoding="utf-8"))
        elif path.endswith(_TEXT) or path == "Makefile":
            found += hits_in_lines(path, file.read_text(encoding="utf-8").splitlines())
    return tuple(found)


def test_text_has_no_banned_phrase() -> None:
    assert not all_hits(), "\n" + "\n".join(map(str, all_hits()))


def test_phrases_are_found_in_names_comments_literals_docstrings_and_documents() -> None:
    source = '"""Told to go."""\n\nx = "nobody is here"\ny = "door"  # as it stands\n'
    hits = hits_in_python("operator/headroom/x.py", source)
    assert [(hit.line, hit.phrase) for hit in hits] == [
        (4, "as it stands"),
        (1, "told to"),
        (3, "nobody"),
    ]
    named = (
        "class SomebodyElse:\n    def holds_littles_law(self): ...\n    def told_of(self): ...\n"
    )
    assert [hit.line for hit in hits_in_python("tests/x.py", named)] == [1, 3]
    constant = 'BYTES = 8\n"""Of a page."""\nx = "Of course"\n'
    assert [hit.phrase for hit in hits_in_python("tests/x.py", constant)] == [HEADLESS]
    fragment = '"""What it does."""\n\nx = 1\n"""How long it lasts."""\ny = 2\n"""By number."""'
    assert [hit.phrase for hit in hits_in_python("tests/x.py", fragment)] == [
        "What ",
        "How ",
        "By ",
    ]
    assert not list(hits_in_lines("x.md", ["Say `intake`, not `door`; Little's law; of course"]))


def main(arguments: list[str]) -> int:
    """Print every hit below the given paths."""
    shown = [hit for hit in all_hits() if hit.path.startswith(tuple(arguments) or ("",))]
    print(*shown, f"{len(shown)} hits", sep="\n")
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
