"""Promises on tokens: measured from the servers' histograms, and kept by leaving more room."""
