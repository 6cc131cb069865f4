"""What a file's text means: the byte scan, names and scopes, statements, and knowledge beyond one file."""
