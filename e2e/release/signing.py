"""Signs the chart with Helm and files with gpg."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.commands import run


@dataclass(frozen=True)
class Signer:
    """A secret OpenPGP key in a file that `gpg --export-secret-keys` wrote."""

    key: str
    """A part of the key's user id, such as its address, that no other key of the file has."""
    keyring: Path
    passphrase_file: Path | None = None

    @property
    def for_helm(self) -> list[str | Path]:
        """Return the arguments with which `helm package` signs."""
        return ["--sign", "--key", self.key, "--keyring", self.keyring, *self._passphrase]

    @property
    def _passphrase(self) -> list[str | Path]:
        return ["--passphrase-file", self.passphrase_file] if self.passphrase_file else []

    def sign(self, file: Path) -> Path:
        """Write the armoured signature next to the file, and return its path.

        Raises:
            ClusterError: gpg is missing, or has no such key, or its passphrase is another.
        """
        signature = file.with_name(f"{file.name}.asc")
        with keys_of(self.keyring) as home:
            run(
                [
                    *("gpg", "--homedir", home, "--batch", "--yes", "--pinentry-mode", "loopback"),
                    *self._passphrase,
                    *("--local-user", self.key, "--armor", "--output", signature),
                    *("--detach-sign", file),
                ],
                what=f"signing {file.name}",
            )
        return signature


@contextmanager
def keys_of(keyring: Path) -> Iterator[Path]:
    """A home for gpg that holds the keys of a file and nothing of this user; gone at the end."""
    # An agent may still be taking its sockets away when the folder goes.
    with tempfile.TemporaryDirectory(prefix="gpg-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        try:
            run(
                ["gpg", "--homedir", home, "--batch", "--quiet", "--import", keyring],
                what=f"reading the keys of {keyring}",
            )
            yield home
        finally:
            run(["gpgconf", "--homedir", home, "--kill", "all"], what="ending gpg's agent")
