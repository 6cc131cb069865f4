"""What a rehearsal raises where hardware would fail, or where it cannot follow."""

from __future__ import annotations


class NotRehearsedError(NotImplementedError):
    """The target has something that a rehearsal cannot play."""


class MissingOperatorError(NotImplementedError):
    """The target has no kernel for an operator and does not send it to the CPU."""


class FallbackRefusedError(RuntimeError):
    """The target would run an operator on the CPU, and the rehearsal is strict."""
