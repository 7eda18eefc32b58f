"""The command line; CONTRIBUTING.md tells its files."""
