"""Estimates the demand behind the counted arrivals: hidden by saturation, inflated by retries."""
