"""The gate: what is found, whether it fails a commit, what of it can be fixed, and the formats in which it is told."""
