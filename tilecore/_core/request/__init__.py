"""What callers hand in: read, and refused where it cannot be."""
