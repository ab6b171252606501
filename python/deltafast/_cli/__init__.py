"""The commands of the command line, and their output."""
