"""Autoscalers of generating services: Headroom's decision, peers' laws on tokens, and bounds."""
