"""`headroom plan`: capacity planning, from the options to the printed plan."""
