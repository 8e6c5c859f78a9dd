"""`headroom doctor`: reads the facts once, then derives findings, each with its remedy."""
