"""Starts a script, or its ranks, so that every process of it joins the rehearsal; collects what they recorded."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from codemods.devices import Device, load_devices
from codemods.errors import UserError
from codemods.operators import device_named, load_operators
from codemods.rehearse.listing import read_listing
from codemods.rehearse.process import Settings

OLDEST_TORCH = (2, 13)
"""The oldest torch that the backend was tried with; what it needs of PrivateUse1 is young."""
GRACE = 10.0
"""Seconds that the other ranks have to end by themselves once one has failed, or a process at its deadline."""
_ROOT = Path(__file__).resolve().parents[2]

Record: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Request:
    """What is to be rehearsed, and how."""

    script: str
    """A file, or a module's name."""
    arguments: tuple[str, ...] = ()
    is_module: bool = False
    """Whether to run it as ``python -m`` does."""
    device: str = "npu"
    """A name of ``rules/devices``."""
    adapter_version: str | None = None
    nproc: int | None = None
    """Ranks to start, as torchrun does; ``None`` starts the script alone."""
    count: int = 2
    """Virtual devices; at least one for each rank."""
    max_steps: int | None = None
    timeout: float | None = None
    """Seconds."""
    strict: bool = False
    """Whether an operator that would fall back to the CPU is an error."""


@dataclass
class Run:
    """What came of a rehearsal."""

    request: Request
    codes: list[int] = field(default_factory=list)
    """The exit code of each rank; negative for a signal."""
    first_failed: int | None = None
    """The rank that failed first."""
    timed_out: bool = False
    interrupted: bool = False
    seconds: float = 0.0
    main_pids: list[int] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    """What each process left, as ``codemods.rehearse.process`` writes it."""


def run(request: Request) -> Run:
    """Rehearses; the script's output goes where this process's goes.

    Raises:
        UserError: torch is missing or too old, there is no such script or version, or the device cannot be rehearsed
    """
    check_torch()
    device = rehearsable(request.device)
    load_operators(request.device, request.adapter_version)  # a wrong version is told now rather than by each process
    read_listing(device.type, request.adapter_version)
    _check_script(request)
    with TemporaryDirectory(prefix="uncuda-rehearsal-") as folder:
        settings = _settings(request, device, folder)
        result = _wait(request, settings, _environments(request, environment(settings)))
        result.records = read_records(Path(folder))
    return result


def check_torch() -> None:
    """Raises UserError where torch is missing or too old for a rehearsal."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        raise UserError("a rehearsal needs torch, which is not installed here; install uncuda[torch]") from None
    match = re.match(r"(\d+)\.(\d+)", version)
    if match and (int(match[1]), int(match[2])) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise UserError(
            f"a rehearsal needs torch {oldest} or newer, and {version} is installed here; install a newer one"
        )


def rehearsable(name: str) -> Device:
    """The device of that name.

    Raises:
        UserError: there is none, or it is not one that an adapter adds to torch
    """
    device = device_named(name)
    if device.dispatch_key == "PrivateUse1":
        return device
    others = ", ".join(one.type for one in load_devices() if one.dispatch_key == "PrivateUse1")
    if device.cuda_compatible:
        raise UserError(
            f"{device.title} runs CUDA code as it is, so there is nothing to rehearse; choose one of {others}"
        )
    raise UserError(f"{device.type} is built into torch and cannot be rehearsed; choose one of {others}")


def environment(settings: Settings) -> dict[str, str]:
    """The environment of a process that takes part, with the package on its path that makes torch call ``join``."""
    folder = Path(settings.folder)
    information = folder / "uncuda_rehearsal-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: uncuda-rehearsal\nVersion: 1\n", "utf-8")
    (information / "entry_points.txt").write_text("[torch.backends]\nuncuda = uncuda_rehearsal:join\n", "utf-8")
    (folder / "uncuda_rehearsal.py").write_text(_ENTRY.format(root=str(_ROOT)), "utf-8")
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **settings.as_environment(),
        "PYTHONPATH": os.pathsep.join(path),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
    }


_ENTRY = '''\
"""Lets torch find the rehearsal that this process is part of."""

import sys


def join():
    try:
        from codemods.rehearse import process
    except ImportError:
        sys.path.append({root!r})
        from codemods.rehearse import process
    process.join()
'''


def read_records(folder: Path) -> list[Record]:
    """The records that the processes left, in the order in which they ended."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return sorted(records, key=lambda record: float(record["ended"]))


def _check_script(request: Request) -> None:
    if not request.is_module and not Path(request.script).exists():
        raise UserError(f"there is no file {request.script}")


def _settings(request: Request, device: Device, folder: str) -> Settings:
    return Settings(
        folder=folder,
        device=device.type,
        name=request.device,
        adapter_version=request.adapter_version,
        count=max(request.count, request.nproc or 1),
        strict=request.strict,
        max_steps=request.max_steps,
        deadline=None if request.timeout is None else time.time() + request.timeout,
    )


def _environments(request: Request, base: dict[str, str]) -> list[dict[str, str]]:
    """The environment of each process: as torchrun sets it, where ranks are asked for."""
    if request.nproc is None:
        return [base]
    world, port = str(request.nproc), str(_free_port())
    common = {
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": world,
        "ROLE_WORLD_SIZE": world,
        "ROLE_NAME": "default",
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "TORCHELASTIC_RUN_ID": "rehearsal",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "OMP_NUM_THREADS": base.get("OMP_NUM_THREADS", "1"),
    }
    ranks = map(str, range(request.nproc))
    return [{**base, **common, "RANK": rank, "LOCAL_RANK": rank, "ROLE_RANK": rank} for rank in ranks]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(request: Request, settings: Settings, environments: Sequence[dict[str, str]]) -> Run:
    """Runs the processes to their end, or to what ends them."""
    result = Run(request)
    begin = time.monotonic()
    with _terminable(), _started(_command(request), environments) as processes:
        result.main_pids = [process.pid for process in processes]
        try:
            _until_end(processes, settings, result)
        except KeyboardInterrupt:
            result.interrupted = True
            _signal(processes, signal.SIGINT)
            _all_ended(processes, time.time() + GRACE)
    result.codes = [process.returncode for process in processes]
    result.seconds = time.monotonic() - begin
    return result


def _command(request: Request) -> list[str]:
    return [sys.executable, *(["-m"] if request.is_module else []), request.script, *request.arguments]


@contextmanager
def _terminable() -> Iterator[None]:
    """Lets a request to terminate be answered as an interrupt is, for the processes are not in this one's group."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _started(command: Sequence[str], environments: Sequence[dict[str, str]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes, each with a session of its own, so that nothing they start outlives them."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for variables in environments:
            processes.append(subprocess.Popen(command, env=variables, start_new_session=True))
        yield processes
    finally:
        _signal(processes, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        for process in processes:
            process.wait()


def _until_end(processes: Sequence[subprocess.Popen[bytes]], settings: Settings, result: Run) -> None:
    while (failed := _first_failed(processes)) is None:
        if _all_ended(processes, time.time() + 0.05):
            return
        if settings.deadline is not None and time.time() > settings.deadline:
            result.timed_out = True
            _records_are_left(processes, Path(settings.folder), time.time() + GRACE)
            return
    result.first_failed = failed
    _all_ended(processes, time.time() + GRACE)


def _first_failed(processes: Sequence[subprocess.Popen[bytes]]) -> int | None:
    return next((rank for rank, process in enumerate(processes) if process.poll()), None)


def _all_ended(processes: Sequence[subprocess.Popen[bytes]], until: float) -> bool:
    """Waits for all processes to end, up to a time; whether they have."""
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, until - time.time()))
    return all(process.poll() is not None for process in processes)


def _records_are_left(processes: Sequence[subprocess.Popen[bytes]], folder: Path, until: float) -> None:
    """Waits until every process has noted where it is, up to a time."""
    paths = [folder / f"{process.pid}.json" for process in processes]
    while time.time() < until and not all(path.exists() for path in paths):
        time.sleep(0.05)


def _signal(processes: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    """Sends a signal to the processes and all that they started."""
    for process in processes:
        if sys.platform == "win32":
            process.terminate()
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
