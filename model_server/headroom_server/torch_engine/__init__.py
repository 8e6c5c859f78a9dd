"""Executes models with torch: the only package that imports it."""

from headroom_server.torch_engine.architectures import register
from headroom_server.torch_engine.engine import TorchEngine
from headroom_server.torch_engine.model import TorchModel

__all__ = ["TorchEngine", "TorchModel", "register"]
