"""Makes the report of a run from the records that its processes left."""

from __future__ import annotations

import os
import re
import signal
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from codemods.operators import State, device_named, load_operators
from codemods.rehearse import recording as seen
from codemods.rehearse.launch import Record, Run
from codemods.rehearse.report import HARM, CudaName, End, OperatorUse, Remark, Report, Site, Transfer
from codemods.rehearse.report_rules import rule_at

_FRAME = re.compile(r'^ *File "(.+)", line (\d+), in ', re.MULTILINE)
_WAITS = ("device to host", "synchronisation")
_HELPER = "ai_device.py"
_COLLECTIVES = "c10d::"  # carried by the process group: no list of operators speaks of them

Frames = list[tuple[str, int]]


def build(run: Run, base: Path) -> Report:
    """The report of a run; places are shown relative to a folder."""
    device = device_named(run.request.device)
    operators = load_operators(run.request.device, run.request.adapter_version)
    merged = seen.Recording(device.type)
    for record in run.records:
        merged.merge(seen.Recording.from_dict(record["recording"]))
        merged.adapter = merged.adapter or record["recording"]["adapter"]
    return Report(
        script=run.request.script,
        device=device.type,
        title=device.title,
        ranks=run.request.nproc or 1,
        processes=len(run.records),
        steps=max((record["steps"] for record in run.records), default=0),
        all_steps=sum(record["steps"] for record in run.records),
        seconds=run.seconds,
        torch=metadata.version("torch"),
        end=_end(run, base),
        provenance=operators.provenance,
        named=tuple(_named(merged, base)),
        operators=tuple(sorted(_operators(merged, base), key=_harm_of_operator)),
        transfers=tuple(sorted(_transfers(merged, base), key=_harm_of_transfer)),
        remarks=tuple(_remarks(merged, base)),
    )


def _named(merged: seen.Recording, base: Path) -> Iterator[CudaName]:
    mentions = sorted(merged.cuda.values(), key=lambda mention: mention.site)
    for mention in mentions:
        rule = rule_at(Path(mention.site.file), mention.site.line) if mention.site.file else None
        yield CudaName(mention.what, _shown(mention.site, base, mention.count), rule)


def _operators(merged: seen.Recording, base: Path) -> Iterator[OperatorUse]:
    for use in merged.operators.values():
        if not use.count or use.name.startswith(_COLLECTIVES):
            continue
        yield OperatorUse(use.name, State(use.state), use.count, use.seconds, _by_count(use.sites, base))


def _harm_of_operator(use: OperatorUse) -> tuple[int, int, str]:
    return (HARM.index(use.state), -use.calls, use.overload)


def _transfers(merged: seen.Recording, base: Path) -> Iterator[Transfer]:
    """What the code did, its places together."""
    for kind, via in sorted({(one.kind, one.via) for one in merged.traffic.values()}):
        same = [one for one in merged.traffic.values() if (one.kind, one.via) == (kind, via)]
        sites: Counter[seen.Site] = Counter()
        for one in same:
            sites[one.site] += one.count
        size = sum(one.bytes for one in same)
        yield Transfer(kind, via, kind in _WAITS, sites.total(), size, _by_count(sites, base))


def _harm_of_transfer(transfer: Transfer) -> tuple[bool, int, int]:
    return (not transfer.waits, -transfer.calls, -transfer.bytes)


def _remarks(merged: seen.Recording, base: Path) -> Iterator[Remark]:
    for remark in sorted(merged.remarks.values(), key=lambda remark: (remark.kind, remark.text, remark.site)):
        yield Remark(remark.kind, remark.text, _shown(remark.site, base, remark.count))


def _by_count(sites: dict[seen.Site, int], base: Path) -> tuple[Site, ...]:
    ordered = sorted(sites.items(), key=lambda item: (-item[1], item[0]))
    return tuple(_shown(site, base, count) for site, count in ordered)


def _shown(site: seen.Site, base: Path, count: int = 1) -> Site:
    return Site(_relative(site.file, base), site.line, count)


def _relative(file: str, base: Path) -> str:
    path = Path(file)
    if not file:
        return ""
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else file


def _end(run: Run, base: Path) -> End:
    """How the run ended: the first reason of those that there may be."""
    for reason in (_interrupted, _timed_out, _error, _bad_exit, _silent, _step_limit):
        end = reason(run, base)
        if end is not None:
            return end
    return End("end", "reached the end")


def _interrupted(run: Run, base: Path) -> End | None:
    return End("interrupted", "interrupted") if run.interrupted else None


def _timed_out(run: Run, base: Path) -> End | None:
    if not run.timed_out:
        return None
    site = next((place for record in _of_main(run) if (place := _place(record, base))), None)
    return End("timeout", f"stopped after {run.request.timeout:g} s (--timeout), before the end was reached", site)


def _error(run: Run, base: Path) -> End | None:
    """The exception that came first."""
    failed = (record for record in run.records if (record["stopped"] or {}).get("reason") == "error")
    record = next(failed, None)
    if record is None or not any(run.codes):
        return None
    stopped = record["stopped"]
    rank = f"rank {record['rank']}: " if run.request.nproc else ""
    lines = [line for line in stopped["message"].splitlines() if line.strip()]
    message = lines[-1 if _FRAME.search(stopped["message"]) else 0].strip() if lines else ""
    frame = _users_frame(_frames(record))
    site = Site(_relative(frame[0], base), frame[1]) if frame else None
    rule = rule_at(Path(frame[0]), frame[1]) if frame else None
    return End("error", f"{rank}{stopped['type']}: {message}" if message else f"{rank}{stopped['type']}", site, rule)


def _bad_exit(run: Run, base: Path) -> End | None:
    rank = run.first_failed if run.first_failed is not None else next((n for n, c in enumerate(run.codes) if c), None)
    if rank is None:
        return None
    who = f"rank {rank}" if run.request.nproc else "the script"
    code = run.codes[rank]
    if code < 0:
        return End("signal", f"{who} was ended by {signal.Signals(-code).name}")
    return End("exit", f"{who} ended with exit code {code}; its own output tells why")


def _silent(run: Run, base: Path) -> End | None:
    if any(_of_main(run)):
        return None
    return End("silent", "the script ended without a word of torch: it does not import it, or ends by os._exit")


def _step_limit(run: Run, base: Path) -> End | None:
    if not any((record["stopped"] or {}).get("reason") == "max-steps" for record in run.records):
        return None
    return End("max-steps", f"stopped after {run.request.max_steps:,} optimizer steps (--max-steps)")


def _of_main(run: Run) -> Iterable[Record]:
    return [record for record in run.records if record["pid"] in run.main_pids]


def _place(record: Record, base: Path) -> Site | None:
    frame = _users_frame(_frames(record))
    return Site(_relative(frame[0], base), frame[1]) if frame else None


def _frames(record: Record) -> Frames:
    """File and line of the frames; where the error came from another process, those in its text."""
    stopped = record["stopped"] or {}
    told = [(file, int(line)) for file, line in _FRAME.findall(stopped.get("message", ""))]
    return told or [(file, line) for file, line, _ in stopped.get("frames", [])]


def _users_frame(frames: Frames) -> tuple[str, int] | None:
    """The innermost frame of the user's own code, else of a library other than torch, else of the helper."""
    for is_wanted in (_is_own, _is_not_torch, lambda file: not file.startswith("<")):
        for file, line in reversed(frames):
            if is_wanted(file):
                return file, line
    return None


def _is_own(file: str) -> bool:
    return _is_not_torch(file) and not _is_installed(file)


def _is_not_torch(file: str) -> bool:
    if file.startswith(("<", *_torch_folders())) or Path(file).name == _HELPER:
        return False
    return _is_installed(file) or not file.startswith(_path("stdlib") + os.sep)


def _is_installed(file: str) -> bool:
    return file.startswith((_path("purelib"), _path("platlib")))


@cache
def _torch_folders() -> tuple[str, ...]:
    """The folders of torch and of this package."""
    spec = find_spec("torch")
    return (*((spec.submodule_search_locations or ()) if spec else ()), str(Path(__file__).parent))


def _path(name: str) -> str:
    return sysconfig.get_paths()[name]
