"""The commands of `headroom`, one module or folder each."""
