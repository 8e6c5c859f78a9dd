"""Start the command line as `python -m headroom`."""

from headroom.cli import main

main()
