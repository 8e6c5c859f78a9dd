"""Builds images from Dockerfiles and archives them, only if their inputs changed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster import content, locks
from cluster.errors import ClusterError
from cluster.images import archives
from cluster.images.buildah import buildah, builds_lock, forget_earlier_builds
from cluster.layout import Cache
from cluster.progress import Progress

BASE_IMAGE = "localhost/python-base:3.11"
INPUTS_LABEL = "dev.headroom.inputs"
FROM_BASE = {"BASE": BASE_IMAGE}
STAGE = re.compile(r"^FROM\s+\S+\s+AS\s+(\S+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Archive:
    """The record of an image that was built and archived."""

    image: str
    inputs: str
    """Key of everything that the image was made from."""
    digest: str
    """The image's id: equal for equal results, however often they were built."""

    def folder(self, cache: Cache) -> Path:
        """Return the folder of the archive's files."""
        return cache.images / file_name(self.image)

    def record(self, cache: Cache) -> Path:
        """Return the path of this record; written last, so that the files are complete."""
        return cache.images / f"{file_name(self.image)}.json"


def file_name(image: str) -> str:
    """An image's name as the name of a file."""
    return re.sub(r"[^a-zA-Z0-9.-]", "_", image)


def archived(cache: Cache, image: str) -> Archive | None:
    """The archive of that image, if it was built."""
    record = cache.images / f"{file_name(image)}.json"
    if not record.exists():
        return None
    found = Archive(**json.loads(record.read_text()))
    return found if found.folder(cache).exists() else None


def require(cache: Cache, image: str) -> Archive:
    """The archive of that image.

    Raises:
        ClusterError: it was not built.
    """
    found = archived(cache, image)
    if found is None:
        raise ClusterError(
            f"the image {image} was not built. "
            f"Build it with `python -m cluster image {image} DOCKERFILE`."
        )
    return found


def build(
    cache: Cache,
    image: str,
    dockerfile: Path,
    context: Path,
    progress: Progress,
    build_args: Mapping[str, str] | None = None,
) -> Archive:
    """Build `image` from a Dockerfile and the files of `context` that it copies, and archive it.

    Nothing is done if Dockerfile, arguments, base image and those files are what they were.
    """
    lock = cache.images / f"{file_name(image)}.lock"
    with locks.exclusive(lock, f"building {image}", progress):
        return _build(cache, image, dockerfile, context, progress, build_args or {})


def _build(
    cache: Cache,
    image: str,
    dockerfile: Path,
    context: Path,
    progress: Progress,
    build_args: Mapping[str, str],
) -> Archive:
    arguments = {**FROM_BASE, **build_args}
    files = context_files(context, dockerfile.read_text())
    base = archived(cache, arguments["BASE"])
    extra = {f"arg/{name}": value for name, value in arguments.items()}
    extra |= {"dockerfile": dockerfile.read_text(), "base": base.digest if base else ""}
    inputs = content.key_of_files(context, files, extra)
    present = archived(cache, image)
    if present is not None and present.inputs == inputs:
        return present
    named = [word for pair in arguments.items() for word in ("--build-arg", "=".join(pair))]
    with (
        progress.step(f"Building {image} from {dockerfile.name}"),
        tempfile.TemporaryDirectory(prefix="headroom-context-") as staged,
        locks.shared(builds_lock(cache)),
    ):
        _stage(context, files, Path(staged))
        for target, name in targets(image, dockerfile.read_text()):
            buildah(
                cache,
                *("bud", "--pull-never", "--network", "host", "--layers", "--tag", name),
                *named,
                *(("--target", target) if target else ()),
                *("--file", dockerfile.resolve()),
                staged,
                what=f"building {name} from {dockerfile}",
            )
    made = archive(cache, image, inputs, progress)
    forget_earlier_builds(cache, progress)
    return made


def targets(image: str, dockerfile_text: str) -> list[tuple[str, str]]:
    """Return what to build, in order: each named stage with an image name, then the image itself.

    A stage without a name goes when earlier builds are forgotten, and its layers with it.
    """
    stages = STAGE.findall(dockerfile_text)
    return [*((stage, f"{image}-{stage}") for stage in stages), ("", image)]


def archive(cache: Cache, image: str, inputs: str, progress: Progress) -> Archive:
    """Write the archive of a built image, unless one with the same content is there."""
    digest = image_id(cache, image)
    made = Archive(image, inputs, digest)
    present = archived(cache, image)
    if present is None or present.digest != digest:
        made.record(cache).unlink(missing_ok=True)
        with progress.step(f"Archiving {image}"):
            archives.push(cache, image, made.folder(cache))
    made.record(cache).write_text(json.dumps(asdict(made)))
    return made


def is_built(cache: Cache, image: str, inputs: str) -> bool:
    """Return whether the builder's storage has an image that is marked as made from `inputs`."""
    marked = ("--filter", f"label={INPUTS_LABEL}={inputs}", "--filter", f"reference={image}")
    return bool(buildah(cache, "images", "--quiet", *marked, what=f"looking up {image}"))


def image_id(cache: Cache, image: str) -> str:
    """The id of an image in the builder's storage."""
    found = buildah(cache, "images", "--quiet", "--no-trunc", image, what=f"looking up {image}")
    return found.splitlines()[0]


def context_files(context: Path, dockerfile_text: str) -> list[Path]:
    """Return the files of `context` that a Dockerfile copies, without those that git ignores.

    `.dockerignore` comes along, so that it is in force here as it is for `docker build`.
    """
    wanted = copied_sources(dockerfile_text) | {".dockerignore"}
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=context,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        files = [context / name for name in listed.stdout.split("\0") if name]
    else:
        files = [path for path in context.rglob("*") if "__pycache__" not in path.parts]
    return sorted({path for path in files if path.is_file() and _is_wanted(path, context, wanted)})


def copied_sources(dockerfile_text: str) -> frozenset[str]:
    """Return what a Dockerfile copies from its context: paths, or `.` if they are not literal."""
    sources: set[str] = set()
    for line in re.sub(r"\\\n", " ", dockerfile_text).splitlines():
        words = line.split()
        if not words:
            continue
        if words[0].upper() == "RUN" and "--mount=type=bind" in line:
            return frozenset({"."})
        if words[0].upper() not in {"COPY", "ADD"}:
            continue
        flags = [word for word in words[1:] if word.startswith("--")]
        if any(flag.startswith("--from=") for flag in flags):
            continue
        if "[" in line or "*" in line or "$" in line:
            return frozenset({"."})
        paths = [word for word in words[1:] if not word.startswith("--")]
        sources |= {path.removeprefix("./").strip("/") or "." for path in paths[:-1]}
    return frozenset(sources)


def _is_wanted(path: Path, context: Path, wanted: frozenset[str]) -> bool:
    relative = path.relative_to(context)
    names = {relative.as_posix(), *(parent.as_posix() for parent in relative.parents)}
    return bool(names & wanted)


def _stage(context: Path, files: list[Path], target: Path) -> None:
    """Copy the context's files, so that an image holds what was hashed and nothing else."""
    for file in files:
        copy = target / file.relative_to(context)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
