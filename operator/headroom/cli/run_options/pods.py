"""Options of `headroom run` for changes to pods and their templates."""

# ruff: noqa: PLC0415  (help is shown without the libraries that the operator needs)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headroom.resources.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOptions:
    """Permitted changes of pods and their templates."""

    mark_pods: Annotated[
        bool,
        typer.Option(
            "--mark-pods/--no-mark-pods",
            envvar="HEADROOM_MARK_PODS",
            help="Mark the pods with the fewest requests in flight, so that a scale-down removes "
            "them first. Requires the permission to patch pods, which includes their images.",
        ),
    ] = False
    downloader_image: Annotated[
        str | None,
        typer.Option(
            envvar="HEADROOM_DOWNLOADER_IMAGE",
            help="Image that downloads hf:// and s3:// models before their servers start. "
            "[default: headroom-downloader of this version]",
            show_default=False,
        ),
    ] = None

    def settings(self, *, has_gateways: bool) -> Settings:
        """Return the settings with which manifests are built."""
        from headroom.resources.settings import DOWNLOADER_IMAGE, Settings

        return Settings(
            downloader_image=self.downloader_image or DOWNLOADER_IMAGE,
            has_gateways=has_gateways,
            marks_pods=self.mark_pods,
        )
