"""Outcomes in, reports out: a table, JSON, a page that opens offline. Only `write` does I/O."""
