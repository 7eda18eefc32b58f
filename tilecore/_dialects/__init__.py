"""What the dialects share: versions, reading tensors and repeats, and dimensions that are only partly known."""
