"""Compares Headroom with its peers in fixed cells of the simulator, and judges the promises."""
