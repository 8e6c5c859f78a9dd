"""Draws charts as inline SVG without a library: axes, shapes and escaped markup."""
