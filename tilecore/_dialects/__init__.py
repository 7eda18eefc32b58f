"""What the dialects share: tensors as callers bring them, and dimensions that are not all known."""
