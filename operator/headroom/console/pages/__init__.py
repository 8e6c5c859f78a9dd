"""The console's pages: what is known of services → HTML and SVG. Pure: time is an argument."""
