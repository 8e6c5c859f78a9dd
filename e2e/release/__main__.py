"""`python -m release`: write a release into a folder, signed if a key is given."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from chart.helm import Helm
from cluster import ClusterError, provision
from cluster.layout import Cache
from cluster.progress import OnConsole
from cluster.tools import binaries
from release.dockerfile import DockerfileError
from release.lock import LockError
from release.making import UNPUBLISHED, Release, make
from release.signing import Signer

ROOT = Path(__file__).resolve().parents[2]
UNSIGNED = (
    "Not signed: no key was given. The checksums show damage, not who made the files.\n"
    "To sign: make release SIGN_KEY=ADDRESS SIGN_KEYRING=FILE, a file that "
    "gpg --export-secret-keys wrote."
)
Key = Annotated[str, typer.Option(envvar="SIGN_KEY", help="Part of the key's user ID.")]
Keyring = Annotated[
    Path | None,
    typer.Option(
        envvar="SIGN_KEYRING", exists=True, dir_okay=False, help="File with the secret key."
    ),
]
Passphrase = Annotated[
    Path | None,
    typer.Option(
        envvar="SIGN_PASSPHRASE_FILE",
        exists=True,
        dir_okay=False,
        help="File with the key's passphrase.",
    ),
]
Url = Annotated[
    str, typer.Option(envvar="RELEASE_URL", help="Folder that publishes the files, for krew.")
]
Output = Annotated[Path, typer.Option(file_okay=False, help="Folder for the release.")]


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def release(
    output: Output = ROOT / "dist",
    key: Key = "",
    keyring: Keyring = None,
    passphrase_file: Passphrase = None,
    url: Url = UNPUBLISHED,
) -> None:
    """Write chart, SBOMs of the images, wheel, krew archive and manifest, and checksums."""
    signer = _signer(key, keyring, passphrase_file)
    cache, progress = Cache.of_this_user(), OnConsole()
    try:
        provision.ensure_helm(cache, progress)
        if signer:
            provision.ensure_signing(cache, progress)
        with tempfile.TemporaryDirectory(prefix="headroom-helm-") as home:
            made = make(ROOT, output, Helm(binaries.helm(cache), Path(home)), signer, url=url)
    except (ClusterError, DockerfileError, LockError) as error:
        Console(stderr=True, highlight=False).print(
            f"[red]error:[/red] {escape(str(error))}", soft_wrap=True
        )
        raise typer.Exit(1) from None
    typer.echo(report(made, key))


def report(made: Release, key: str) -> str:
    """Return the list of written files, and who signed them."""
    listed = [f"{file.stat().st_size:>9,} B  {file.name}" for file in made.files]
    signed = f"Chart and checksums are signed by {key}." if made.signed else UNSIGNED
    return "\n".join([f"Headroom {made.version}:", *listed, signed])


def _signer(key: str, keyring: Path | None, passphrase_file: Path | None) -> Signer | None:
    if bool(key) != (keyring is not None):
        raise typer.BadParameter(
            f"a signature needs SIGN_KEY and SIGN_KEYRING; got {key!r} and {str(keyring or '')!r}"
        )
    return Signer(key, keyring, passphrase_file) if keyring else None


if __name__ == "__main__":
    app()
