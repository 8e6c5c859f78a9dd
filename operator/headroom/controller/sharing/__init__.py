"""Services that compete for the same accelerators."""
