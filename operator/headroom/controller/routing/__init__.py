"""Gateway mode: which gateway a service's connections go to, and the gateways' configuration."""

from headroom.controller.routing.router import Router

__all__ = ["Router"]
