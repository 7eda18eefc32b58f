"""From a plan to bytes."""
