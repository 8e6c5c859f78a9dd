"""The page /docs: every route of the OpenAPI document as plain HTML, without a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import FastAPI, Request, Response

_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
}
_STYLE = "body{font:1rem sans-serif;max-width:60rem;margin:2rem auto}code{font-size:.95em}"


def add_documentation(app: FastAPI) -> None:
    """Serve the page; the document itself is at /openapi.json."""

    async def docs(_: Request) -> Response:
        """Every route, with its purpose and its statuses."""
        return Response(page(app.openapi()), media_type="text/html", headers=_HEADERS)

    app.router.add_route("/docs", docs, methods=["GET"], include_in_schema=False)


def page(document: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI document."""
    title = escape(str(document["info"]["title"]))
    version = escape(str(document["info"]["version"]))
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<style>{_STYLE}</style><h1>{title} {version}</h1>"
        "<p>Schemas and examples: <a href=/openapi.json>/openapi.json</a>.</p>"
        f"{''.join(_operations(document))}</html>"
    )


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            about = operation.get("description") or operation.get("summary") or ""
            yield (
                f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
                f"<p>{escape(about)}</p><ul>"
            )
            for status, response in sorted(operation.get("responses", {}).items()):
                meaning = escape(str(response.get("description", "")))
                yield f"<li><code>{escape(str(status))}</code> {meaning}"
            yield "</ul>"
