"""What goes wrong for reasons that a user can mend."""

from __future__ import annotations


class UserError(Exception):
    """A state of files or settings that the user has to change; the message says what, where, and what to do."""
