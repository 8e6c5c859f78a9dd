"""Couples the prefill and the decode pool of a pair; each stays a service of its own."""
