"""Memory and processors: what may be used, and what is kept."""
