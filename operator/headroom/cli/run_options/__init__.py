"""The options of `headroom run`, one module per topic."""
