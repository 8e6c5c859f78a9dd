"""Types of numpy arrays. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
"""Numbers, in one dimension or more: a docstring says which."""
