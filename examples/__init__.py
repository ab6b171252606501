"""Recipes that run: each is a function that the tests call, and a script."""
