"""Unified diffs and hunks."""
