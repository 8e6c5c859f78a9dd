"""`headroom reference`: the page of fields, conditions, metrics and commands, from the code."""
