"""Turns the counters scraped from pods into sliding windows, and the windows into signals."""
