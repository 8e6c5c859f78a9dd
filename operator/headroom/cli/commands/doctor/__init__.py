"""`headroom doctor`: facts gathered once → findings, each with its remedy."""
