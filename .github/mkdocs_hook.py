"""Hooks of mkdocs: pages and pictures keep their paths in the tree, and GitHub's anchors."""

import re
import subprocess
from pathlib import Path

import pathspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
UNLISTED = ("**/decisions/[0-9]*", "/.github/*", "/e2e/*", "/tests/*")
"""Pages that other pages link to, and that the navigation need not list."""


def slugify(heading: str, separator: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Use GitHub's anchors, so that links work in both places."""
    config.mdx_configs["toc"] = {"slugify": slugify}
    config.not_in_nav = pathspec.GitIgnoreSpec.from_lines(UNLISTED)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of docs_dir by all pages, pictures and what pages link to."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    shown = ["*.md", "*.svg", "LICENSE", "charts/headroom/monitoring"]
    names = subprocess.run([*listed, *shown], cwd=ROOT, check=True, capture_output=True, text=True)
    kept = [file for file in files if file.src_uri.startswith(("css/", "js/", "img/", "search/"))]
    pages = [
        File.generated(config, name, abs_src_path=str(ROOT / name))
        for name in names.stdout.splitlines()
    ]
    return Files([*kept, *pages])
