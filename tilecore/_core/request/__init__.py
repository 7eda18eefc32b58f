"""Reads what callers pass in, or refuses it."""
