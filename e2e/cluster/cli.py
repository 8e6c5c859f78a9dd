"""`python -m cluster`: set up, start, enter and stop a local cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from cluster import ownership, provision
from cluster.control_plane import ControlPlane
from cluster.errors import ClusterError, NotPossibleError
from cluster.images import builds as images
from cluster.layout import Cache, Layout
from cluster.node import Node
from cluster.plan import Plan
from cluster.progress import OnConsole
from headroom.cli.broken_pipe import quiet_without_reader

DEFAULT_NAME = "local"
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A real Kubernetes cluster on this machine: control plane, and a node with emulated GPUs.",
)
Name = Annotated[str, typer.Option("--name", help="Name of the cluster; several can run at once.")]
PlaneOnly = Annotated[
    bool, typer.Option(help="Control plane only: needs no root and runs no pods.")
]


@app.command()
def setup(
    control_plane_only: PlaneOnly = False,
    browser: Annotated[
        bool, typer.Option("--browser", help="Also install Chromium (as root).")
    ] = False,
) -> None:
    """Build and install, once, everything that clusters need."""
    cache, progress = Cache.of_this_user(), OnConsole()
    if control_plane_only:
        provision.ensure_control_plane(cache, progress)
    else:
        provision.ensure_node(cache, progress)
    provision.ensure_chart_tools(cache, progress)
    if browser:
        try:
            provision.ensure_browser(cache, progress)
        except NotPossibleError as error:
            progress.note(f"The console's pages will not be tested: {error}")
    progress.note(f"Set-up is complete; the cache is {cache.root}")


@app.command()
def up(
    name: Name = DEFAULT_NAME,
    gpus: Annotated[
        int, typer.Option(min=0, max=1024, help="Number of emulated GPUs of the node.")
    ] = 8,
    control_plane_only: PlaneOnly = False,
    preload: Annotated[list[str] | None, typer.Option(help="Images to load into the node.")] = None,
) -> None:
    """Start a cluster that runs until `down`."""
    progress = OnConsole()
    cluster: ControlPlane | Node
    if control_plane_only:
        cluster = ControlPlane(name, persistent=True)
    else:
        cluster = Node(name, gpus=gpus, preload=preload or (), persistent=True, progress=progress)
    with progress.step(f"Starting the cluster {name}"):
        cluster.start()
    progress.note(f"export KUBECONFIG={cluster.kubeconfig}")


@app.command()
def down(name: Name = DEFAULT_NAME) -> None:
    """Stop a cluster and remove everything that it created."""
    layout = Layout.named(Cache.of_this_user(), name)
    if not ownership.is_held(layout):
        swept = ownership.sweep(Cache.of_this_user())
        OnConsole().note(f"Swept what {name} left." if name in swept else f"{name} is not running.")
        return
    with OnConsole().step(f"Stopping the cluster {name}"):
        _attached(name).end()


@app.command()
def status() -> None:
    """Show running clusters and the state of the cache."""
    console, cache = Console(highlight=False), Cache.of_this_user()
    for layout in ownership.living(cache):
        kind = "node" if layout.init_pid.exists() else "control plane"
        ready = "ready" if layout.api_ready.exists() else "starting"
        console.print(f"{layout.name}: {kind}, {ready}, KUBECONFIG={layout.kubeconfig}")
    if not ownership.living(cache):
        console.print("No cluster is running.")
    try:
        provision.require_node(cache)
        console.print(f"The cache {cache.root} is complete.")
    except ClusterError as error:
        console.print(f"A node cannot start: {error}")


@app.command(context_settings=PASS_ON)
def kubectl(context: typer.Context, name: Name = DEFAULT_NAME) -> NoReturn:
    """Run kubectl against a cluster, as its administrator."""
    cluster = _attached(name)
    program = cluster.programs.component("kubectl")
    environment = {**os.environ, **cluster.kubectl_environment()}
    os.execve(program, ["kubectl", *context.args], environment)


@app.command(context_settings=PASS_ON)
def enter(context: typer.Context, name: Name = DEFAULT_NAME) -> NoReturn:
    """Run a command (default: a shell) in a node's namespaces."""
    node = _attached(name)
    if not isinstance(node, Node):
        raise ClusterError(
            f"{name} has no node to enter: it was started with --control-plane-only."
        )
    argv = [*node.enter_command(), f"--wd={Path.cwd()}", *(context.args or ["bash"])]
    os.execvpe(argv[0], argv, {**os.environ, **node.inside_environment()})


@app.command()
def image(
    image_name: Annotated[str, typer.Argument(metavar="NAME")],
    dockerfile: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
    build_arg: Annotated[list[str] | None, typer.Option(metavar="K=V")] = None,
    context: Annotated[Path, typer.Option(exists=True, file_okay=False)] = Path(),
) -> None:
    """Build an image from a Dockerfile if its inputs have changed."""
    cache, progress = Cache.of_this_user(), OnConsole()
    provision.ensure_node(cache, progress)
    made = images.build(
        cache, image_name, dockerfile, context.resolve(), progress, pairs(build_arg or [])
    )
    progress.note(f"{made.image} {made.digest}")


@app.command()
def load(image_name: str, name: Name = DEFAULT_NAME) -> None:
    """Import a built image into a running node."""
    with OnConsole().step(f"Importing {image_name} into {name}"):
        _attached(name).load(image_name)


@app.command()
def logs(
    component: Annotated[
        str, typer.Argument(help="Component; without it, list the components.")
    ] = "",
    name: Name = DEFAULT_NAME,
    lines: int = 100,
) -> None:
    """Print the log of a component of a running or failed cluster."""
    cluster = _attached(name)
    if component:
        typer.echo(cluster.log_tail(component, lines))
        return
    for folder in (cluster.layout.logs, cluster.kept_logs):
        for file in sorted(folder.glob("*.log")) if folder.exists() else []:
            typer.echo(f"{file.stem}  {file}")


def _attached(name: str) -> ControlPlane | Node:
    """Return a handle on a cluster that another process started."""
    plan = Layout.named(Cache.of_this_user(), name).plan
    isolated = Plan.read(plan).isolated if plan.exists() else True
    return Node(name, persistent=True) if isolated else ControlPlane(name, persistent=True)


def pairs(words: list[str]) -> dict[str, str]:
    """Build arguments by name.

    Raises:
        ClusterError: one is not KEY=VALUE.
    """
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise ClusterError(f"a build argument must be KEY=VALUE; got {word!r}.")
        found[key] = value
    return found


def main() -> None:
    """Run a verb; print errors in a few lines."""
    try:
        with quiet_without_reader():
            app()
    except ClusterError as error:
        console = Console(stderr=True, highlight=False)
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        raise SystemExit(1) from None
