"""What a rehearsal has to say, as data; the other modules ``report_*`` make it and show it."""

from __future__ import annotations

from dataclasses import dataclass

from codemods.operators import LIMITS as OPERATOR_LIMITS
from codemods.operators import State

LIMITS = (
    "A rehearsal proves plumbing: that devices, dtypes, names and process groups fit together. It proves neither the "
    "vendor's kernels nor their numbers, and says nothing about speed: every operator ran on this CPU.",
    "Times are this CPU's; a share tells which part of the operators' time would be spent on the host's CPU.",
    OPERATOR_LIMITS,
    "torch.compile, graphs and extensions are not rehearsed.",
)
HARM = (State.MISSING, State.FALLBACK, State.UNKNOWN, State.DECOMPOSES, State.KERNEL)
"""The states of operators, the worst first."""


@dataclass(frozen=True)
class Site:
    """A place in the script or in what it imports."""

    path: str
    """Relative to the working directory where it lies below it; empty where no line of the user's was running."""
    line: int
    count: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.path else "unknown place"


@dataclass(frozen=True)
class End:
    """How the run ended."""

    reason: str
    """``end``, ``max-steps``, ``timeout``, ``interrupted``, ``error``, ``exit``, ``signal`` or ``silent``."""
    text: str
    """One sentence."""
    site: Site | None = None
    """Where it stopped."""
    rule: str | None = None
    """The rule of ``uncuda convert`` that finds that place."""

    @property
    def is_failure(self) -> bool:
        """Whether the script did not get where it was to get."""
        return self.reason not in ("end", "max-steps")


@dataclass(frozen=True)
class CudaName:
    """A place that still named CUDA."""

    text: str
    """What it named, e.g. ``tensor.cuda()``."""
    site: Site
    rule: str | None
    """The rule of ``uncuda convert`` that finds it."""


@dataclass(frozen=True)
class OperatorUse:
    """An operator that the script called."""

    overload: str
    state: State
    calls: int
    seconds: float
    """On this CPU."""
    sites: tuple[Site, ...]
    """The callers, the most frequent first."""


@dataclass(frozen=True)
class Transfer:
    """Something that made host and device wait for each other, or copied between them."""

    kind: str
    """``device to host``, ``host to device``, ``device to device`` or ``synchronisation``."""
    via: str
    """What the code did: ``item``, ``cpu``, ``synchronize``, ..."""
    waits: bool
    """Whether the host waits until the device has caught up."""
    calls: int
    bytes: int
    sites: tuple[Site, ...]


@dataclass(frozen=True)
class Remark:
    """Something that was not rehearsed, or is worth knowing."""

    kind: str
    """``not rehearsed``, ``dtype`` or ``namespace``."""
    text: str
    site: Site


@dataclass(frozen=True)
class Report:
    """What a rehearsal has to say."""

    script: str
    device: str
    """The device type."""
    title: str
    """The vendor's name for it."""
    ranks: int
    processes: int
    """Those that used torch: ranks, and what they started."""
    steps: int
    """Steps of an optimizer that the busiest process took."""
    all_steps: int
    """Those of all processes together."""
    seconds: float
    torch: str
    end: End
    provenance: str
    """Where the states of the operators come from."""
    named: tuple[CudaName, ...] = ()
    operators: tuple[OperatorUse, ...] = ()
    """The worst first."""
    transfers: tuple[Transfer, ...] = ()
    """Those that cost most first."""
    remarks: tuple[Remark, ...] = ()
    limits: tuple[str, ...] = LIMITS

    @property
    def exit_code(self) -> int:
        """0 nothing to say, 1 CUDA named or operators without a kernel, 2 the script did not get through."""
        if self.end.is_failure:
            return 2
        return 1 if self.named or self.without_kernel else 0

    @property
    def without_kernel(self) -> tuple[OperatorUse, ...]:
        """The operators that ran on the CPU or would have failed, the worst first."""
        return tuple(use for use in self.operators if use.state in (State.FALLBACK, State.MISSING))

    @property
    def operator_seconds(self) -> float:
        """The time of all operators."""
        return sum(use.seconds for use in self.operators)

    def share(self, *uses: OperatorUse) -> float:
        """The part of the operators' time that some of them took, from 0 to 1."""
        return sum(use.seconds for use in uses) / self.operator_seconds if self.operator_seconds else 0.0

    def a_step(self, calls: int) -> str:
        """A number of calls by step of one process's optimizer, for readers; empty where there was no step."""
        if not self.all_steps:
            return ""
        each = calls / self.all_steps
        return f"{each:,.0f}" if each >= 10 or each == int(each) else f"{each:.1f}"

    def by_state(self) -> list[tuple[State, int, int, float]]:
        """For each state that occurred, the worst first: its overloads, their calls and their share of the time."""
        groups = ((state, [use for use in self.operators if use.state is state]) for state in HARM)
        return [(state, len(uses), sum(use.calls for use in uses), self.share(*uses)) for state, uses in groups if uses]
