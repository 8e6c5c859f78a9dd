"""`python -m cluster VERB`."""

from cluster.cli import main

main()
