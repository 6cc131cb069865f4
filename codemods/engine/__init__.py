"""Composes the codemods: from paths to findings, edits and new bytes."""
