"""Estimates the demand behind the counted arrivals, and finds what more replicas cannot change."""
