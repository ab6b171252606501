"""Credentials of stores, from the sources that their libraries know."""
