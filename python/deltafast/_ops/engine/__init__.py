"""Engines: what joins and sorts for the commands, so that each command is written once."""
