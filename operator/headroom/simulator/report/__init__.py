"""Compares outcomes and renders them: tables, JSON, an offline HTML page. Only `write` does I/O."""
