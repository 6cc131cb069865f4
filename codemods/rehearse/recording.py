"""What a rehearsal saw: operators, traffic between host and device, places that name CUDA, and remarks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, order=True)
class Site:
    """A line of the user's code; an empty file means that no such line was on the stack."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "unknown place"


@dataclass
class OperatorUse:
    """One operator overload, e.g. ``aten::add.Tensor``."""

    name: str
    state: str = "unknown"
    """``kernel``, ``decomposes``, ``fallback``, ``missing`` or ``unknown`` on the target."""
    count: int = 0
    seconds: float = 0.0
    """Time in the CPU kernel, without what the rehearsal adds."""
    sites: dict[Site, int] = field(default_factory=dict)
    """How often each place called it."""


@dataclass
class Traffic:
    """Copies between host and device, or waits of the host for the device, from one place."""

    kind: str
    """``host to device``, ``device to host``, ``device to device`` or ``synchronisation``."""
    via: str
    """What the code did: ``item``, ``cpu``, ``tolist``, ``bool``, ``to``, ``copy_``, ``nonzero``, ``synchronize``."""
    site: Site
    count: int = 0
    bytes: int = 0
    """Of all copies together; 0 for a synchronisation without one."""


@dataclass
class CudaMention:
    """A place that still names CUDA: a call into torch.cuda, ``.cuda()``, a device ``cuda`` or the backend ``nccl``."""

    what: str
    site: Site
    count: int = 0


@dataclass
class Remark:
    """Something that the user should know, e.g. a call that a rehearsal cannot play."""

    kind: str
    """``not rehearsed``, ``dtype`` or ``namespace``."""
    text: str
    site: Site
    count: int = 0


@dataclass
class Recording:
    """All that one or several processes of a rehearsal saw."""

    device: str
    """The device type, e.g. ``npu``."""
    adapter: str = ""
    """Name and version of the adapter whose namespace was played; empty where no list of its names is known."""
    operators: dict[str, OperatorUse] = field(default_factory=dict)
    traffic: dict[tuple[str, str, Site], Traffic] = field(default_factory=dict)
    cuda: dict[tuple[str, Site], CudaMention] = field(default_factory=dict)
    remarks: dict[tuple[str, str, Site], Remark] = field(default_factory=dict)
    peak_memory: dict[int, int] = field(default_factory=dict)
    """The most bytes allocated at once, by device index."""

    def operator(self, name: str) -> OperatorUse:
        """The entry of an operator, made when first asked for."""
        return self.operators.setdefault(name, OperatorUse(name))

    def add_traffic(self, kind: str, via: str, site: Site, nbytes: int = 0) -> None:
        """Counts a copy or a wait."""
        entry = self.traffic.setdefault((kind, via, site), Traffic(kind, via, site))
        entry.count += 1
        entry.bytes += nbytes

    def add_cuda(self, what: str, site: Site) -> None:
        """Counts a place that names CUDA."""
        self.cuda.setdefault((what, site), CudaMention(what, site)).count += 1

    def add_remark(self, kind: str, text: str, site: Site) -> None:
        """Counts a remark."""
        self.remarks.setdefault((kind, text, site), Remark(kind, text, site)).count += 1

    def clear(self) -> None:
        """Forgets what was counted, as a process does that was forked; entries of operators stay, with zero calls."""
        for use in self.operators.values():
            use.count, use.seconds = 0, 0.0
            use.sites.clear()
        for table in (self.traffic, self.cuda, self.remarks, self.peak_memory):
            table.clear()

    def merge(self, other: Recording) -> None:
        """Adds what another process saw."""
        for name, use in other.operators.items():
            mine = self.operator(name)
            mine.state = use.state if mine.state == "unknown" else mine.state
            mine.count += use.count
            mine.seconds += use.seconds
            for site, count in use.sites.items():
                mine.sites[site] = mine.sites.get(site, 0) + count
        for key, traffic in other.traffic.items():
            entry = self.traffic.setdefault(key, Traffic(*key))
            entry.count += traffic.count
            entry.bytes += traffic.bytes
        for place, mention in other.cuda.items():
            self.cuda.setdefault(place, CudaMention(*place)).count += mention.count
        for about, remark in other.remarks.items():
            self.remarks.setdefault(about, Remark(*about)).count += remark.count
        for index, peak in other.peak_memory.items():
            self.peak_memory[index] = max(peak, self.peak_memory.get(index, 0))

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and dictionaries, for JSON."""
        return {
            "device": self.device,
            "adapter": self.adapter,
            "operators": [
                {
                    "name": use.name,
                    "state": use.state,
                    "count": use.count,
                    "seconds": use.seconds,
                    "sites": [_placed(site, count=count) for site, count in use.sites.items()],
                }
                for use in self.operators.values()
                if use.count
            ],
            "traffic": [
                _placed(one.site, kind=one.kind, via=one.via, count=one.count, bytes=one.bytes)
                for one in self.traffic.values()
            ],
            "cuda": [_placed(one.site, what=one.what, count=one.count) for one in self.cuda.values()],
            "remarks": [
                _placed(one.site, kind=one.kind, text=one.text, count=one.count) for one in self.remarks.values()
            ],
            "peak_memory": {str(index): peak for index, peak in self.peak_memory.items()},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Recording:
        """Reads what ``as_dict`` gave."""
        recording = cls(data["device"], data["adapter"])
        for one in data["operators"]:
            sites = {_site(place): place["count"] for place in one["sites"]}
            recording.operators[one["name"]] = OperatorUse(
                one["name"], one["state"], one["count"], one["seconds"], sites
            )
        for one in data["traffic"]:
            traffic = Traffic(one["kind"], one["via"], _site(one), one["count"], one["bytes"])
            recording.traffic[traffic.kind, traffic.via, traffic.site] = traffic
        for one in data["cuda"]:
            recording.cuda[one["what"], _site(one)] = CudaMention(one["what"], _site(one), one["count"])
        for one in data["remarks"]:
            remark = Remark(one["kind"], one["text"], _site(one), one["count"])
            recording.remarks[remark.kind, remark.text, remark.site] = remark
        recording.peak_memory = {int(index): peak for index, peak in data["peak_memory"].items()}
        return recording


def _placed(site: Site, **values: Any) -> dict[str, Any]:
    return {**values, "file": site.file, "line": site.line}


def _site(place: dict[str, Any]) -> Site:
    return Site(place["file"], place["line"])
