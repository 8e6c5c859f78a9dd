"""The workflows of the repository, checked by actionlint."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import ClusterError, NotPossibleError, locks
from cluster.commands import run
from cluster.layout import Cache
from cluster.progress import OnConsole
from cluster.tools import binaries

WORKFLOWS = Path(__file__).parents[3] / ".github" / "workflows"


@pytest.fixture(scope="module")
def actionlint() -> Path:
    cache, progress = Cache.of_this_user(), OnConsole()
    try:
        with locks.exclusive(cache.root / "setup.lock", "setting up", progress):
            return binaries.ensure_actionlint(cache, progress)
    except NotPossibleError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yaml")), ids=lambda path: path.stem)
def test_workflow_is_valid(actionlint: Path, path: Path) -> None:
    run([actionlint, path], what="checking the workflow")


def test_workflow_with_an_unknown_key_is_refused(actionlint: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text((WORKFLOWS / "test.yaml").read_text().replace("runs-on:", "runs:"))
    with pytest.raises(ClusterError, match="runs-on"):
        run([actionlint, broken], what="checking the workflow")
