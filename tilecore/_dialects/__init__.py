"""What the dialects share: reading tensors and repeats, and dimensions that are only partly known."""
