"""Autoscalers of generating services: Headroom's decision, peers' rules on tokens, and bounds."""
