"""The console's pages as HTML and SVG. Pure: time is an argument."""
