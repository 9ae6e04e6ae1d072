"""The commands of the command line. Each imports what it needs when it is called, so that help is quick."""
