"""Hostile tables: each gives the right rows or one clear error, never a panic, a hang, wrong rows or much memory."""
