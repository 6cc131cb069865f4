"""The tables of a report, ready to be shown: the same on a terminal, in plain text and on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codemods.operators import State
from codemods.rehearse.report import CudaName, OperatorUse, Report, Site, Transfer
from codemods.report.wording import count

SITES_SHOWN = 3
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")
_NO_OPERATOR = "No operator ran on the device."
_STATES = {
    State.MISSING: "no kernel: an error there",
    State.FALLBACK: "runs on the CPU",
    State.UNKNOWN: "unknown",
    State.DECOMPOSES: "made of others",
    State.KERNEL: "has a kernel",
}


@dataclass(frozen=True)
class Table:
    """A heading and rows of text."""

    heading: str
    columns: tuple[str, ...]
    """A name that begins with ``#`` is that of a column of figures."""
    rows: tuple[tuple[str, ...], ...]
    empty: str
    """What an empty table says."""

    def labels(self) -> list[tuple[str, bool]]:
        """The name of each column, and whether it holds figures."""
        return [(column.removeprefix("#"), column.startswith("#")) for column in self.columns]


def summary_lines(report: Report) -> list[str]:
    """What was run, and how it ended."""
    ranks = f", {report.ranks} ranks," if report.ranks > 1 else ""
    took = f"{report.seconds:.1f} s" + (f", {count(report.steps, 'optimizer step')}" if report.steps else "")
    lines = [
        f"{report.script}{ranks} on a virtual {report.device} ({report.title}), torch {report.torch}, {took}",
        end_line(report),
    ]
    if report.end.rule is not None:
        lines.append(f"`uncuda convert` finds that place: {report.end.rule}")
    return lines


def end_line(report: Report) -> str:
    """Whether the end was reached, else where it stopped."""
    place = f"{report.end.site}: " if report.end.site else ""
    return f"{place}{report.end.text}"


def tables(report: Report, *, every_operator: bool = False) -> list[Table]:
    """The tables, what matters most first; all operators by name only where asked for."""
    found = [_named(report), _without_kernel(report), _by_state(report), _transfers(report), _remarks(report)]
    if every_operator:
        found.append(_operators("All operators", report, report.operators, _NO_OPERATOR))
    return found


def _named(report: Report) -> Table:
    return Table(
        "CUDA still named",
        ("place", "rule", "what", "#times"),
        tuple(map(_named_row, report.named)),
        "Nowhere.",
    )


def _named_row(name: CudaName) -> tuple[str, ...]:
    return (str(name.site), name.rule or "none finds it", name.text, f"{name.site.count:,}")


def _without_kernel(report: Report) -> Table:
    return _operators("Operators without a kernel", report, report.without_kernel, "None.")


def _operators(heading: str, report: Report, uses: Sequence[OperatorUse], empty: str) -> Table:
    columns = ("operator", "state", "#calls", "#a step", "#time", "called from")
    return Table(heading, columns, tuple(_operator_row(use, report) for use in uses), empty)


def _operator_row(use: OperatorUse, report: Report) -> tuple[str, ...]:
    share = f"{report.share(use):.1%}"
    return (use.overload, _STATES[use.state], f"{use.calls:,}", report.a_step(use.calls), share, _sites(use.sites))


def _by_state(report: Report) -> Table:
    rows = tuple(
        (_STATES[state], f"{overloads:,}", f"{calls:,}", f"{share:.1%}")
        for state, overloads, calls, share in report.by_state()
    )
    return Table("Operators by state", ("state", "#operators", "#calls", "#time"), rows, _NO_OPERATOR)


def _transfers(report: Report) -> Table:
    return Table(
        "Copies and waits between host and device",
        ("what", "kind", "host waits", "#calls", "#a step", "#size", "called from"),
        tuple(_transfer_row(transfer, report) for transfer in report.transfers),
        "None.",
    )


def _transfer_row(transfer: Transfer, report: Report) -> tuple[str, ...]:
    size = _size(transfer.bytes) if transfer.bytes else ""
    waits = "yes" if transfer.waits else "no"
    calls = f"{transfer.calls:,}"
    return (transfer.via, transfer.kind, waits, calls, report.a_step(transfer.calls), size, _sites(transfer.sites))


def _remarks(report: Report) -> Table:
    columns = ("place", "kind", "remark", "#times")
    rows = ((str(one.site), one.kind, one.text, f"{one.site.count:,}") for one in report.remarks)
    return Table("Remarks", columns, tuple(rows), "None.")


def _sites(sites: Sequence[Site]) -> str:
    shown = ", ".join(f"{site} ({site.count:,})" for site in sites[:SITES_SHOWN])
    more = len(sites) - SITES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _size(size: int) -> str:
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_BYTES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_BYTES[unit]}" if unit == 0 or value >= 10 else f"{value:.1f} {_BYTES[unit]}"
