"""Views of an outcome: patch, plain text, JSON, and the terminal."""
