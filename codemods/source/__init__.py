"""Files in and out: which there are, their text, and writing them back."""
