"""What happens inside each rehearsed process: the backend joins as torch is imported, and a record is left at the end.

The launcher puts a package with an entry point of the group ``torch.backends`` on the path of the processes it starts.
``import torch`` calls it, as it calls a vendor's adapter; so the script, its ranks, the workers that it spawns and the
Python programs that it starts all have the virtual accelerator without a line in the script.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing import util
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from codemods.rehearse.recording import Recording

VARIABLE = "UNCUDA_REHEARSAL"
LONGEST_MESSAGE = 4000


@dataclass(frozen=True)
class Settings:
    """What every process of a rehearsal has to know; travels in the environment."""

    folder: str
    """Where the records go."""
    device: str
    """The device type, e.g. ``npu``."""
    name: str
    """The device as the user named it: it may name a card."""
    adapter_version: str | None = None
    count: int = 2
    """Devices that there are to be."""
    strict: bool = False
    max_steps: int | None = None
    """Steps of an optimizer after which the script is stopped."""
    deadline: float | None = None
    """When the script is stopped, in seconds of ``time.time()``."""

    def as_environment(self) -> dict[str, str]:
        """The variables that tell a process to join."""
        return {VARIABLE: json.dumps(asdict(self)), "AI_DEVICE": self.device}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings | None:
        """The settings of the rehearsal that this process is part of, if it is."""
        text = environment.get(VARIABLE)
        return cls(**json.loads(text)) if text else None


class Participant:
    """This process's part in a rehearsal."""

    def __init__(self, settings: Settings, recording: Recording) -> None:
        self.settings = settings
        self.recording = recording
        self.pid = os.getpid()
        self.steps: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        self.most_steps = 0
        self.stopped: dict[str, Any] | None = None

    def before_step(self, optimizer: Optimizer, *_: Any) -> None:
        """Counts a step; stops the script where it would begin one more than was asked for.

        Stopping there rather than after the last step lets what follows a step (logging, schedulers, a second
        optimizer) be rehearsed as well.
        """
        taken = self.steps.get(optimizer, 0)
        if self.settings.max_steps is not None and taken >= self.settings.max_steps:
            self.stopped = {"reason": "max-steps"}
            raise SystemExit(0)
        self.steps[optimizer] = taken + 1
        self.most_steps = max(self.most_steps, taken + 1)

    def at_deadline(self) -> None:
        """Notes where the main thread is, while it still is there."""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        self.stopped = {"reason": "timeout", "frames": _frames_of_stack(frame)}
        self.leave_record()

    def after_fork(self) -> None:
        """A forked child counts for itself, and does not run ``atexit`` functions."""
        if self.pid != os.getpid():
            self.pid = os.getpid()
            self._forget()
        util.Finalize(None, self.leave_record, exitpriority=0)

    def _forget(self) -> None:
        seen = self.recording
        for use in seen.operators.values():  # the backend holds on to them
            use.count, use.seconds = 0, 0.0
            use.sites.clear()
        for part in (seen.traffic, seen.cuda, seen.remarks, seen.peak_memory, self.steps):
            part.clear()
        self.most_steps, self.stopped = 0, None

    def leave_record(self) -> None:
        """Writes what there is to say of this process, in one step; nothing where nobody waits for it any more."""
        path = Path(self.settings.folder) / f"{self.pid}.json"
        if not path.parent.is_dir():
            return
        record = {
            "pid": self.pid,
            "rank": os.environ.get("RANK"),
            "steps": self.most_steps,
            "ended": time.time(),
            "stopped": self.stopped or _uncaught(),
            "recording": self._seen(),
        }
        path.with_suffix(".part").write_text(json.dumps(record), encoding="utf-8")
        path.with_suffix(".part").replace(path)

    def _seen(self) -> dict[str, Any]:
        """What was recorded; at the deadline the script still runs, and may add to it meanwhile."""
        while True:
            with suppress(RuntimeError):  # a dictionary changed its size
                return self.recording.as_dict()


_participant: Participant | None = None


def leave_record() -> None:
    """Writes the record of this process, if it takes part, before its end."""
    if _participant is not None:
        _participant.leave_record()


def join() -> None:
    """Makes this process part of the rehearsal that its environment tells of; does nothing without one, or twice."""
    global _participant
    settings = Settings.from_environment(os.environ)
    if settings is None or _participant is not None:
        return
    from codemods.operators import load_operators
    from codemods.rehearse.backend import install

    operators = load_operators(settings.name, settings.adapter_version)
    recording = install(
        settings.device,
        adapter_version=settings.adapter_version,
        count=settings.count,
        strict=settings.strict,
        operator_state=lambda overload: operators.state(str(overload)).value,
    )
    _participant = Participant(settings, recording)
    _watch(_participant)


def _watch(participant: Participant) -> None:
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    register_optimizer_step_pre_hook(participant.before_step)
    atexit.register(participant.leave_record)
    util.register_after_fork(participant, Participant.after_fork)
    if participant.settings.deadline is not None:
        timer = threading.Timer(max(0.0, participant.settings.deadline - time.time()), participant.at_deadline)
        timer.daemon = True
        timer.start()


def _uncaught() -> dict[str, Any] | None:
    """The exception that ended the script, which the interpreter leaves in ``sys``."""
    error: BaseException | None = getattr(sys, "last_value", None)
    if error is None or isinstance(error, SystemExit):
        return None
    return {
        "reason": "error",
        "type": type(error).__name__,
        "message": str(error)[:LONGEST_MESSAGE],
        "frames": _frames_of_error(error),
    }


def _frames_of_error(error: BaseException) -> list[tuple[str, int, str]]:
    """File, line and function of each frame, the innermost last."""
    frames = _as_tuples(traceback.extract_tb(error.__traceback__))
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        frames.append((error.filename, error.lineno, "<module>"))
    return frames


def _frames_of_stack(frame: FrameType | None) -> list[tuple[str, int, str]]:
    return _as_tuples(traceback.extract_stack(frame)) if frame is not None else []


def _as_tuples(summaries: Iterable[traceback.FrameSummary]) -> list[tuple[str, int, str]]:
    return [(one.filename, one.lineno or 0, one.name) for one in summaries]
