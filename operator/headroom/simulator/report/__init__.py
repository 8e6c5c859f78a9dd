"""Renders outcomes as tables, JSON and an offline HTML page. Only `write` does I/O."""
