"""Finds replicas that are far slower than the others or fail, and replaces them one at a time."""
