"""PURE. Who may wait, who is served next, what a batch costs: the server's whole decision."""
