"""`python -m discodso` is the command line."""

from discodso.cli import main

main()
