"""`python -m cluster VERB`: the command line."""

from cluster.cli import main

main()
