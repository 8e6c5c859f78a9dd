"""Servers that others make, each serving the same sleeping model; they run in their own venvs."""
