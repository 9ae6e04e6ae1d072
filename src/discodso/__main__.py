"""`python -m discodso` is the command line."""

from discodso.cli.main import main

main()
