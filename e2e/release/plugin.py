"""Builds the Python wheel, and the krew archive and manifest of `kubectl headroom`.

krew installs files, not Python packages: the archive holds the wheel and a launcher. The launcher
runs the plugin from a virtual environment, and prints how to create it if it does not exist.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path

import yaml

from cluster.commands import run

MANIFEST = "headroom.yaml"
"""krew requires the plugin's name as the name of the file."""
LAUNCHER = """\
#!/bin/sh
# Runs `kubectl headroom` from a virtual environment, which a user creates once per version.
venv="${HEADROOM_VENV:-${XDG_DATA_HOME:-$HOME/.local/share}/headroom-%(version)s}"
if [ ! -x "$venv/bin/kubectl-headroom" ]; then
  file="$0"
  while [ -L "$file" ]; do  # krew links to the file in its store
    link=$(readlink "$file")
    case "$link" in /*) file="$link" ;; *) file="$(dirname "$file")/$link" ;; esac
  done
  here=$(CDPATH= cd -- "$(dirname -- "$file")" && pwd -P)
  echo "kubectl headroom needs a Python environment (3.11 or newer). To create it:" >&2
  echo "  python3 -m venv '$venv'" >&2
  echo "  '$venv/bin/pip' install '$here/%(wheel)s[operator]'" >&2
  exit 1
fi
exec "$venv/bin/kubectl-headroom" "$@"
"""


def build_wheel(root: Path, output: Path, epoch_s: int) -> Path:
    """Build the wheel offline with the pinned hatchling; raise ClusterError if that fails."""
    uv = Path(sys.executable).with_name("uv")
    options = ["--wheel", "--offline", "--no-build-isolation", "--no-create-gitignore", "--quiet"]
    where = ["--python", sys.executable, "--out-dir", str(output), str(root)]
    env = {"SOURCE_DATE_EPOCH": str(epoch_s)}
    run([uv, "build", *options, *where], what="building the wheel", env=env)
    (wheel,) = output.glob("headroom-*.whl")
    return wheel


def pack_plugin(wheel: Path, licence: Path, version: str, epoch_s: int) -> Path:
    """Write the archive of launcher, wheel and licence next to the wheel."""
    launcher = LAUNCHER % {"version": version, "wheel": wheel.name}
    contents = {
        "LICENSE": licence.read_bytes(),
        wheel.name: wheel.read_bytes(),
        "kubectl-headroom": launcher.encode(),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), epoch_s
            member.mode = 0o755 if name == "kubectl-headroom" else 0o644
            tar.addfile(member, io.BytesIO(content))
    archive = wheel.with_name(f"kubectl-headroom-{version}.tar.gz")
    archive.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch_s))
    return archive


def krew_manifest(archive: Path, version: str, url: str) -> str:
    """Return the krew manifest of an archive that is published under `url`."""
    platform = {
        "selector": {
            "matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]
        },
        "uri": f"{url.rstrip('/')}/{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "bin": "kubectl-headroom",
        "files": [{"from": "*", "to": "."}],
    }
    spec = {
        "version": f"v{version}",
        "shortDescription": "Explain and diagnose GPU inference services",
        "description": "Shows SLO, replicas and cost of Headroom's InferenceServices, explains "
        "each decision, and finds why a service misses its SLO.",
        "caveats": "Needs Python 3.11 or newer. The first call of `kubectl headroom` prints the "
        "two commands that create its environment.",
        "platforms": [platform],
    }
    manifest = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "headroom"},
        "spec": spec,
    }
    return yaml.safe_dump(manifest, sort_keys=False, width=100)
