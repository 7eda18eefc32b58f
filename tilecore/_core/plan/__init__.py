"""From shape and repeats to checked sizes and loops."""
