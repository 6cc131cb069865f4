"""Takes out what the author of a file waived, and says what is wrong with the waivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from codemods.analysis.module import Module
from codemods.analysis.waivers import Waiver, waivers_in
from codemods.catalogue import load_catalogue
from codemods.findings import Finding

_UNUSED, _INVALID = "UC001", "UC002"


def without_waived(module: Module, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that no waiver takes out, with those about the waivers themselves, in the order of the text.

    What is converted together with a waived place is left and reported: half an idiom would not run.

    Raises:
        SourceError: the comments of the file cannot be read
    """
    waivers = waivers_in(module)
    if not waivers:
        return list(findings)
    used: set[tuple[int, str]] = set()
    waived: set[int] = set()
    for finding in findings:
        for waiver, code in _taking_out(finding, waivers, module):
            used.add((waiver.start, code))
            waived.add(id(finding))
    groups = {finding.group for finding in findings if id(finding) in waived} - {None}
    kept = [f.left_alone() if f.group in groups else f for f in findings if id(f) not in waived]
    kept += (finding for waiver in waivers for finding in _about(waiver, used, module))
    return sorted(kept, key=lambda finding: (finding.start, finding.end, finding.rule))


def _taking_out(finding: Finding, waivers: Iterable[Waiver], module: Module) -> Iterator[tuple[Waiver, str]]:
    """The waivers of a finding, each with its code that is the finding's; an empty one stands for all."""
    last = module.lines.position(max(finding.start, finding.end - 1))[0]
    for waiver in waivers:
        if not waiver.fault and waiver.covers(finding.line, last):
            yield from ((waiver, code) for code in waiver.codes or ("",) if finding.rule.startswith(code))


def _about(waiver: Waiver, used: set[tuple[int, str]], module: Module) -> Iterator[Finding]:
    """What is wrong with a waiver."""
    if waiver.fault:
        yield _finding(_INVALID, waiver, module, waiver.fault)
        return
    known = load_catalogue()
    unknown = [code for code in waiver.codes if not any(rule.startswith(code) for rule in known)]
    for code in unknown:
        yield _finding(_INVALID, waiver, module, f"there is no rule {code}")
    codes = [code for code in waiver.codes or ("",) if code not in unknown]
    unused = [code for code in codes if (waiver.start, code) not in used]
    if unused:
        yield _finding(_UNUSED, waiver, module, ", ".join(unused) if len(unused) < len(codes) else "")


def _finding(code: str, waiver: Waiver, module: Module, detail: str) -> Finding:
    rule = load_catalogue()[code]
    message = f"{rule.message}: {detail}" if detail else rule.message
    line, column = module.position(waiver.start)
    return Finding(code, rule.tier, message, waiver.start, waiver.end, line, column)
