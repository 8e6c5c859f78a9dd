"""Learned time of iterations, learned length of answers, and the pace to keep. Pure."""
