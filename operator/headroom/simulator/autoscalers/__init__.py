"""Headroom's decision and its peers, each as an `Autoscaler` with its published formula."""
