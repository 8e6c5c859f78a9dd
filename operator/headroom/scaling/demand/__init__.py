"""Estimates the demand behind the counted arrivals, and finds obstacles to scaling up."""
