"""The command line; ARCHITECTURE.md describes its files."""
