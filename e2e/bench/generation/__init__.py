"""Benchmarks of text generation: the engine, its front, overload."""
