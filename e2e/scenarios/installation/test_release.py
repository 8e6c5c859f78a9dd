"""A release as a user verifies it: with a test key, Helm and gpg."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from chart.helm import Helm
from chart.paths import CHART, ROOT
from cluster import ClusterError, provision
from cluster.commands import run
from cluster.layout import Cache
from cluster.progress import OnConsole
from release.__main__ import app
from release.making import Release, make, package
from release.signing import Signer

pytestmark = pytest.mark.clock

PUBLISHER, STRANGER = "release@headroom.test", "stranger@headroom.test"


@dataclass(frozen=True)
class Keys:
    """Two key pairs in files, as gpg exports them."""

    folder: Path

    def secret(self, who: str) -> Path:
        return self.folder / f"{who}.secret.gpg"

    def public(self, who: str) -> Path:
        return self.folder / f"{who}.public.gpg"

    @property
    def passphrase_file(self) -> Path:
        return self.folder / "passphrase"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    provision.ensure_signing(Cache.of_this_user(), OnConsole())
    made = Keys(tmp_path_factory.mktemp("keys"))
    made.passphrase_file.write_text("a phrase of the tests\n")
    with tempfile.TemporaryDirectory(prefix="gpg-", ignore_cleanup_errors=True) as home:
        gpg = ("gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback")
        unlocked = (*gpg, "--passphrase-file", str(made.passphrase_file))
        for who in (PUBLISHER, STRANGER):
            user = f"Test <{who}>"
            run([*unlocked, "--quick-gen-key", user, "ed25519", "sign", "never"], what="a key")
            run([*unlocked, "--output", made.secret(who), "--export-secret-keys", who], what="it")
            run([*gpg, "--output", made.public(who), "--export", who], what="its public part")
        run(["gpgconf", "--homedir", home, "--kill", "all"], what="ending gpg's agent")
    return made


@pytest.fixture(scope="module")
def signed(helm: Helm, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Release:
    signer = Signer(PUBLISHER, keys.secret(PUBLISHER), keys.passphrase_file)
    return make(ROOT, tmp_path_factory.mktemp("signed"), helm, signer)


@pytest.fixture
def folder(signed: Release, tmp_path: Path) -> Path:
    """A copy of the signed release, which a test may spoil."""
    for file in signed.files:
        shutil.copy2(file, tmp_path)
    return tmp_path


def chart_in(folder: Path) -> Path:
    (found,) = folder.glob("*.tgz")
    return found


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def check_sums(folder: Path) -> None:
    run(["sha256sum", "--check", "--strict", "SHA256SUMS"], what="the sums", cwd=folder)


def check_signature(folder: Path, keyring: Path) -> None:
    """Check the signature as deploy/README.md shows it, for a user without keys."""
    with tempfile.TemporaryDirectory(prefix="gpg-", ignore_cleanup_errors=True) as home:
        run(
            [
                *("gpg", "--no-default-keyring", "--keyring", keyring),
                *("--verify", "SHA256SUMS.asc", "SHA256SUMS"),
            ],
            what="the signature",
            cwd=folder,
            env={"GNUPGHOME": home},
        )


def test_a_signed_release_is_verified(folder: Path, helm: Helm, keys: Keys) -> None:
    public = keys.public(PUBLISHER)
    said = helm("verify", chart_in(folder), "--keyring", public)
    assert PUBLISHER in said
    helm("template", "headroom", chart_in(folder), "--verify", "--keyring", public)
    check_signature(folder, public)
    check_sums(folder)
    summed = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert {file.name for file in folder.iterdir()} - summed == {"SHA256SUMS", "SHA256SUMS.asc"}


def test_one_changed_byte_is_noticed(folder: Path, helm: Helm, keys: Keys) -> None:
    public = keys.public(PUBLISHER)
    flip_a_byte(chart_in(folder))
    with pytest.raises(ClusterError, match="sha256 sum does not match"):
        helm("verify", chart_in(folder), "--keyring", public)
    with pytest.raises(ClusterError, match="sha256 sum does not match"):
        helm("template", "headroom", chart_in(folder), "--verify", "--keyring", public)
    with pytest.raises(ClusterError, match=r"headroom-[0-9.]+tgz: FAILED|did NOT match"):
        check_sums(folder)
    flip_a_byte(folder / "SHA256SUMS")
    with pytest.raises(ClusterError, match="BAD signature"):
        check_signature(folder, public)


def test_signature_of_another_key_is_rejected(folder: Path, helm: Helm, keys: Keys) -> None:
    stranger = keys.public(STRANGER)
    with pytest.raises(ClusterError, match="signature"):
        helm("verify", chart_in(folder), "--keyring", stranger)
    with pytest.raises(ClusterError, match="No public key"):
        check_signature(folder, stranger)


def test_wrong_passphrase_signs_nothing_and_changes_no_file(
    folder: Path, helm: Helm, keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> None:
    wrong = tmp_path_factory.mktemp("wrong") / "passphrase"
    wrong.write_text("another\n")
    signer = Signer(PUBLISHER, keys.secret(PUBLISHER), wrong)
    before = {file: file.stat() for file in folder.iterdir()}
    with pytest.raises(ClusterError, match="helm package"):
        make(ROOT, folder, helm, signer)
    assert {file: file.stat() for file in folder.iterdir()} == before
    with pytest.raises(ClusterError, match="signing passphrase"):
        signer.sign(wrong)
    assert list(wrong.parent.iterdir()) == [wrong]


@pytest.mark.usefixtures("helm_program")
def test_release_without_a_key_says_that_it_is_unsigned(folder: Path) -> None:
    said = CliRunner().invoke(app, ["--output", str(folder)])
    assert said.exit_code == 0, said.output
    assert "Not signed: no key was given." in said.stdout
    assert not list(folder.glob("*.prov")), "an earlier release's provenance is still there"
    assert not list(folder.glob("*.asc"))
    check_sums(folder)


def test_key_without_keyring_is_rejected(keys: Keys, tmp_path: Path) -> None:
    half = ["--keyring", str(keys.secret(PUBLISHER)), "--output", str(tmp_path / "dist")]
    said = CliRunner().invoke(app, half)
    assert said.exit_code == 2
    assert "a signature needs SIGN_KEY" in said.output
    assert not (tmp_path / "dist").exists()


def test_the_same_tree_gives_the_same_bytes(helm: Helm, signed: Release, tmp_path: Path) -> None:
    chart = tmp_path / "headroom"
    shutil.copytree(CHART, chart)
    for file in chart.rglob("*"):
        os.utime(file, (1, 1))
        file.chmod(0o700)
    package(chart, tmp_path, helm, None)
    first = next(file for file in signed.files if file.suffix == ".tgz")
    assert chart_in(tmp_path).read_bytes() == first.read_bytes()
