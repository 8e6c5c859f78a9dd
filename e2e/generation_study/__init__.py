"""Measures autoscalers of generating services: `python -m generation_study`."""
