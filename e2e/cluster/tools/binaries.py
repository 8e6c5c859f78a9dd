"""Builds Kubernetes (one program), the pause program, Helm and actionlint from Go modules, once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cluster.commands import run
from cluster.content import key_of_files
from cluster.layout import Cache
from cluster.progress import Progress
from cluster.tools import golang

HERE = Path(__file__).parents[1]
KUBERNETES_MODULE = HERE / "localnode"
PAUSE_MODULE = HERE / "pause"
HELM_MODULE = HERE / "helmcli"
ACTIONLINT_MODULE = HERE / "actionlint"
KUBERNETES_VERSION = "1.36.3"
HELM_VERSION = "4.3.1"
COMPONENTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)


@dataclass(frozen=True)
class Kubernetes:
    """A folder with one program and a name in it for each component."""

    folder: Path

    def component(self, name: str) -> str:
        """The path of a component's program."""
        return str(self.folder / name)

    @property
    def complete(self) -> bool:
        """All names are there; they are made last, so the program is whole too."""
        return all((self.folder / name).exists() for name in COMPONENTS)


def kubernetes(cache: Cache) -> Kubernetes:
    """Return the path of the programs for the present module, built or not."""
    key = _module_key(KUBERNETES_MODULE, {"version": KUBERNETES_VERSION})
    return Kubernetes(cache.binaries / f"kubernetes-{key}")


def pause(cache: Cache) -> Path:
    """Return the path of the pause program for the present module, built or not."""
    return cache.binaries / f"pause-{_module_key(PAUSE_MODULE, {})}" / "pause"


def helm(cache: Cache) -> Path:
    """Return the path of the Helm program for the present module, built or not."""
    return cache.binaries / f"helm-{_module_key(HELM_MODULE, {'version': HELM_VERSION})}" / "helm"


def actionlint(cache: Cache) -> Path:
    """Return the path of the checker of GitHub workflows for the present module, built or not."""
    return cache.binaries / f"actionlint-{_module_key(ACTIONLINT_MODULE, {})}" / "actionlint"


def ensure_kubernetes(cache: Cache, progress: Progress) -> Kubernetes:
    """Build the program unless it is there: about 5 min cold on two cores, 184 MB."""
    programs = kubernetes(cache)
    if programs.complete:
        return programs
    go = golang.ensure(cache, progress)
    version = "k8s.io/component-base/version"
    major, minor, _ = KUBERNETES_VERSION.split(".")
    flags = (
        f"-s -w -X {version}.gitVersion=v{KUBERNETES_VERSION} "
        f"-X {version}.gitMajor={major} -X {version}.gitMinor={minor}"
    )
    title = f"Compiling Kubernetes {KUBERNETES_VERSION} (5 to 8 min the first time, then kept)"
    with progress.step(title):
        # Never -trimpath: it makes the build cache of earlier builds useless.
        _build(go, KUBERNETES_MODULE, programs.folder / "kubernetes", ["-ldflags", flags], {})
    for name in COMPONENTS:
        link = programs.folder / name
        link.unlink(missing_ok=True)
        link.symlink_to("kubernetes")
    return programs


def ensure_pause(cache: Cache, progress: Progress) -> Path:
    """Build the pause program unless it is there: a second."""
    program = pause(cache)
    if not program.exists():
        go = golang.ensure(cache, progress)
        with progress.step("Compiling the pause program"):
            _build(go, PAUSE_MODULE, program, ["-ldflags", "-s -w"], {"CGO_ENABLED": "0"})
    return program


def ensure_helm(cache: Cache, progress: Progress) -> Path:
    """Build Helm unless it is there: about 3 min cold on two cores, 60 MB."""
    program = helm(cache)
    if not program.exists():
        go = golang.ensure(cache, progress)
        flags = f"-s -w -X helm.sh/helm/v4/internal/version.version=v{HELM_VERSION}"
        with progress.step(f"Compiling Helm {HELM_VERSION} (3 min the first time, then kept)"):
            _build(go, HELM_MODULE, program, ["-ldflags", flags], {}, "helm.sh/helm/v4/cmd/helm")
    return program


def ensure_actionlint(cache: Cache, progress: Progress) -> Path:
    """Build actionlint if it is missing: about half a minute on two cores, 6 MB."""
    program = actionlint(cache)
    if not program.exists():
        go = golang.ensure(cache, progress)
        package = "github.com/rhysd/actionlint/cmd/actionlint"
        with progress.step("Compiling actionlint"):
            _build(go, ACTIONLINT_MODULE, program, ["-ldflags", "-s -w"], {}, package)
    return program


def _build(
    go: Path,
    module: Path,
    target: Path,
    flags: list[str],
    env: dict[str, str],
    package: str = ".",
) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    run(
        [go, "build", "-buildvcs=false", *flags, "-o", partial, package],
        what=f"compiling {target.name}",
        cwd=module,
        env={"GOFLAGS": "-mod=readonly", **env},
    )
    partial.replace(target)


def _module_key(module: Path, extra: dict[str, str]) -> str:
    files = [file for file in sorted(module.iterdir()) if file.suffix in {".go", ".mod", ".sum"}]
    return key_of_files(module, files, extra)
