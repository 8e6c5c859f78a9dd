"""An object as the API server stores it, for tests."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.clock

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "resnet", "namespace": "vision", "resourceVersion": "17"},
}
