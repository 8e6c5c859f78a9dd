"""The model repository extension over HTTP: index, load, unload.

    POST /v2/repository/index                        lists models and their states
    POST /v2/repository/models/{model}/load          reads the folder again; returns when warm
    POST /v2/repository/models/{model}/unload        returns when accepted requests are answered

Source:
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_model_repository.md
"""

from __future__ import annotations

from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headroom_server.errors import InvalidRequestError, NotJsonError
from headroom_server.protocols.schemas import ErrorBody, openapi_body
from headroom_server.repository.folder import NAME
from headroom_server.rule_words import rule_of
from headroom_server.runtime.control import Control
from headroom_server.runtime.served_model import ModelState
from headroom_server.web.application.raw_routes import (
    Endpoint,
    add_route,
    encoded_response,
    json_response,
)
from headroom_server.web.inference.request_body import read_body

MAX_BODY_BYTES = 64 * 1024


M = TypeVar("M", bound=BaseModel)

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "Invalid input, or a model that cannot be loaded."},
    403: {"model": ErrorBody, "description": "HEADROOM_MODEL_CONTROL is none."},
    404: {"model": ErrorBody, "description": "No such model is loaded."},
    408: {"model": ErrorBody, "description": "The request was not complete in time."},
    413: {"model": ErrorBody, "description": "The body is too large."},
    431: {"model": ErrorBody, "description": "The headers are too long."},
}


class _Closed(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class IndexRequest(_Closed):
    """Selection of the models to list."""

    ready: bool = Field(False, description="List only models that take requests.")


class NoParameters(_Closed):
    """No parameters: the folder describes the model."""


class LoadRequest(_Closed):
    """Loads a model from the repository."""

    parameters: NoParameters = NoParameters()


class UnloadParameters(_Closed):
    """Parameters that Triton's clients send."""

    unload_dependents: bool = Field(False, description="No model depends on another here.")


class UnloadRequest(_Closed):
    """Unloads a model."""

    parameters: UnloadParameters = UnloadParameters()


class IndexEntry(BaseModel):
    """One version of a model."""

    name: str
    version: str
    state: ModelState
    reason: str


class Done(BaseModel):
    """An empty object."""


def add_control(app: FastAPI, control: Control) -> None:
    """Add the three routes."""

    async def index(request: Request) -> Response:
        """List the models in the repository or served, with state and reason."""
        query = await _body(request, IndexRequest)
        entries = [entry._asdict() for entry in await control.index(ready=query.ready)]
        return json_response(entries)

    async def load(request: Request) -> Response:
        """Load a model as it is in the repository now."""
        control.permit()
        await _body(request, LoadRequest)
        await control.load(request.path_params["name"])
        return encoded_response(b"{}")

    async def unload(request: Request) -> Response:
        """Unload a model; others keep serving."""
        control.permit()
        await _body(request, UnloadRequest)
        await control.unload(request.path_params["name"])
        return encoded_response(b"{}")

    _post(app, "/v2/repository/index", index, IndexRequest, list[IndexEntry])
    _post(app, "/v2/repository/models/{name}/load", load, LoadRequest, Done)
    _post(app, "/v2/repository/models/{name}/unload", unload, UnloadRequest, Done)


def _post(app: FastAPI, path: str, endpoint: Endpoint, takes: type[BaseModel], gives: Any) -> None:
    body = openapi_body(takes)
    body["requestBody"]["required"] = False
    if "{name}" in path:
        schema = {"type": "string", "pattern": f"^{NAME.pattern}$"}
        body["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": schema}]
    responses = {200: {"model": gives}, **REFUSALS}
    add_route(app, "POST", path, endpoint, "repository", responses=responses, openapi_extra=body)


async def _body(request: Request, schema: type[M]) -> M:
    """Return the parsed body; an empty one means the defaults.

    Raises:
        InvalidRequestError: for anything else: a configuration or files in a request would be code
            from its sender.
    """
    data = await read_body(dict(request.scope["headers"]), request.receive, MAX_BODY_BYTES)
    try:
        return schema.model_validate_json(data or b"{}")
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(map(str, problem["loc"])) or "the body"
        if problem["type"] == "json_invalid":
            raise NotJsonError("the body is not JSON") from error
        if problem["type"] == "extra_forbidden":
            raise InvalidRequestError(
                f"{field}: unknown parameter; configuration and files are read from the repository"
            ) from error
        raise InvalidRequestError(f"{field}: {rule_of(problem)}") from error
