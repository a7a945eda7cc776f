"""`python -m noregret` is the command line."""

from .cli import main

main()
