"""Benchmarks of real models on a device."""
