"""What serves the command line alone."""
