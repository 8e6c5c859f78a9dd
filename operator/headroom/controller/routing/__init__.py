"""Gateway mode: which gateway a service leads to, and what the gateways are told."""

from headroom.controller.routing.router import Router

__all__ = ["Router"]
