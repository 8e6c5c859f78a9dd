"""Which image fetches models."""

from __future__ import annotations

from typing import Annotated

import typer

DownloaderImage = Annotated[
    str | None,
    typer.Option(
        envvar="HEADROOM_DOWNLOADER_IMAGE",
        help="Image that fetches the models of hf:// and s3:// before their servers start. "
        "[default: headroom-downloader of this version]",
        show_default=False,
    ),
]
