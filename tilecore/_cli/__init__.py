"""The command line; CONTRIBUTING.md describes its files."""
