"""The command line: a file for each command or two; `main` gathers them."""
