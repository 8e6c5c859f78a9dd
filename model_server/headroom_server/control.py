"""The model repository extension of the Open Inference Protocol: index, load, unload.

    POST /v2/repository/index                        what lies there, and what of it is served
    POST /v2/repository/models/{model}/load          anew from the folder, warm before it answers
    POST /v2/repository/models/{model}/unload        answers when all that was accepted is answered

Whoever may call these decides what runs here: load and unload are refused unless the server was
started with HEADROOM_MODEL_CONTROL=explicit, and nothing of a model comes with the request.
Source: https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_model_repository.md
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import FastAPI, Request, Response

from headroom_server.engine import LoadError
from headroom_server.errors import InvalidRequestError, NotJsonError, RequestError
from headroom_server.inference import read_body
from headroom_server.models import LoadFailedError, Models, State
from headroom_server.repository.folder import NAME
from headroom_server.routes import DirectRoute
from headroom_server.store import Store

if TYPE_CHECKING:
    from headroom_server.routes import Endpoint

log = logging.getLogger("headroom_server")

MAX_BODY_BYTES = 64 * 1024


class ControlRefusedError(RequestError):
    """Models are not loaded and unloaded by requests here."""

    status = 403


class LoadRefusedError(RequestError):
    """The model cannot be loaded as it lies in the repository."""

    status = 400


def add_control(app: FastAPI, models: Models, store: Store, *, explicit: bool) -> None:
    """Add the three routes."""

    async def index(request: Request) -> Response:
        """All that lies in the repository or is served, with state and reason."""
        asked = await _body(request, {"ready"})
        told = {key: (State.UNAVAILABLE, why) for key, why in (await _known(store)).items()}
        told |= models.states()
        entries = [
            {"name": name, "version": version, "state": state, "reason": reason}
            for (name, version), (state, reason) in sorted(told.items())
            if state is State.READY or not asked.get("ready")
        ]
        return Response(orjson.dumps(entries), media_type="application/json")

    async def load(request: Request) -> Response:
        """Bring a model in as it lies in the repository now."""
        _permit(explicit=explicit, models=models)
        await _body(request, {"parameters"}, parameters=set())
        name = _name(request)
        try:
            await models.load(await asyncio.to_thread(store.versions, name))
        except (LoadError, LoadFailedError) as error:
            log.warning("model %s is not loaded: %s", name, error)
            raise LoadRefusedError(f"model {name!r} is not loaded: {error}") from error
        except ModuleNotFoundError as error:
            raise LoadRefusedError(
                f"model {name!r} is not loaded: it needs {error.name}, which this image lacks"
            ) from error
        return Response(b"{}", media_type="application/json")

    async def unload(request: Request) -> Response:
        """Take a model out; others are served on."""
        _permit(explicit=explicit, models=models)
        await _body(request, {"parameters"}, parameters={"unload_dependents"})
        await models.unload(_name(request))
        return Response(b"{}", media_type="application/json")

    _post(app, "/v2/repository/index", index)
    _post(app, "/v2/repository/models/{model}/load", load)
    _post(app, "/v2/repository/models/{model}/unload", unload)


def _post(app: FastAPI, path: str, endpoint: Endpoint) -> None:
    app.router.add_api_route(
        path,
        endpoint,
        methods=["POST"],
        route_class_override=DirectRoute,
        tags=["repository"],
        response_model=None,
    )


async def _known(store: Store) -> dict[tuple[str, str], str]:
    try:
        return await asyncio.to_thread(store.known)
    except LoadError:
        return {}  # a server without a repository: what is served is told all the same


def _permit(*, explicit: bool, models: Models) -> None:
    if not explicit:
        raise ControlRefusedError(
            "models are neither loaded nor unloaded at run time here: start the server with "
            "HEADROOM_MODEL_CONTROL=explicit"
        )
    if models.draining:
        raise ControlRefusedError("this replica is stopping")


def _name(request: Request) -> str:
    name: str = request.path_params["model"]
    if not NAME.fullmatch(name):
        raise InvalidRequestError(
            f"a model's name has letters, digits, '.', '_', '-'; got {name!r:.100}"
        )
    return name


async def _body(
    request: Request, fields: set[str], parameters: set[str] | None = None
) -> dict[str, Any]:
    """The JSON object that a body is, or no body.

    Raises:
        InvalidRequestError: for other fields: a configuration or files that came with a request
            would be code of whoever sent it.
    """
    data = await read_body(dict(request.scope["headers"]), request.receive, MAX_BODY_BYTES)
    if not data:
        return {}
    try:
        said = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise NotJsonError(f"the body is not JSON: {error}") from error
    if not isinstance(said, dict) or said.keys() - fields:
        raise InvalidRequestError(f"the body: an object with at most {sorted(fields)}")
    inner = said.get("parameters", {})
    if not isinstance(inner, dict) or inner.keys() - (parameters or set()):
        raise InvalidRequestError(
            f"parameters: an object with at most {sorted(parameters or ())}; the model's own are "
            f"read from the repository"
        )
    return said
