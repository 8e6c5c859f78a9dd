"""The testbed itself: its control plane and its node."""
