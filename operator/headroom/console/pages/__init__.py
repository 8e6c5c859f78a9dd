"""The console's pages as HTML and SVG. Pure."""
