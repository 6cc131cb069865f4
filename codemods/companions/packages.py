"""What is installed: a line of a requirements file, or a word of ``pip install`` and its like."""

from __future__ import annotations

import re
from functools import cache

from codemods import vendor_text
from codemods.companions.remarks import Knowledge, Remark
from codemods.companions.vocabulary import load_vocabulary
from codemods.cuda_api import Package, load_packages
from codemods.findings import Tier

_NAME = re.compile(r"(?:[\w.-]+::)?([A-Za-z0-9][\w.-]*)")
_REPOSITORY = re.compile(
    r"(?:git\+)?(?:https?|ssh|git)://\S*?/([\w.-]+?)(?:\.git)?(?:@[^#\s]*)?(?:#(?:.*&)?egg=([\w.-]+).*)?\Z"
)
_CUDA_BUILD = re.compile(r"(?:\+|%2B)cu(\d{2})(\d+)\b", re.IGNORECASE)
_CUDA_BUILD_OF_CONDA = re.compile(r"=\S*cuda_?(?:\d|\*)", re.IGNORECASE)
_CUDA_INDEX = re.compile(
    r"https?://\S*?/cu(\d{2})(\d+)(?=[/.?#\s]|\Z)|https?://\S*(?:\bcu\d{2,3}\b|/whl/[^/\s]*\bcu(?:da)?\b)",
    re.IGNORECASE,
)
_BUILD_NUMBER = re.compile(r"-(?:cu|cuda)\d+x?\Z")
_WHEEL = re.compile(r"(?:\S*/)?([A-Za-z0-9_.]+?)-\d\S*\.whl\Z")


def package_remark(text: str, start: int, end: int, known: Knowledge) -> Remark | None:
    """What there is to say of a requirement: a name with its version, a URL, or an index to look in."""
    name = _name_of(text)
    package = _package(name) if name else None
    if package is not None and package.name.partition(".")[0] in known.modules:
        return None  # the repository is that package
    if package is not None:
        return Remark(start, end, "UC734", *_about(package))
    build = _CUDA_BUILD.search(text)
    if build is not None:
        return Remark(start, end, "UC733", _build(name, f"CUDA {build[1]}.{build[2]}"))
    if _CUDA_INDEX.search(text):
        return Remark(start, end, "UC733", _installs("an index of builds for CUDA"))
    if name and "://" not in text and name in load_vocabulary().toolkit_packages:
        return Remark(start, end, "UC733", f"{name}; leave it out for other devices")
    if name and name.startswith("nvidia-") and name not in load_vocabulary().not_libraries:
        return Remark(
            start, end, "UC734", "a library of CUDA, which a CUDA build of torch brings by itself; leave it out"
        )
    if name and _CUDA_BUILD_OF_CONDA.search(text):
        return Remark(start, end, "UC733", _build(name, "CUDA"))
    return None


def _about(package: Package) -> tuple[str, Tier | None]:
    reason = f"{package.title}. {package.reason.rstrip('.')}"
    offers = vendor_text.packages_instead(package)
    # As in Python: with builds for the CPU the requirement itself is no obstacle.
    return f"{reason}; {offers}" if offers else reason, Tier.NOTE if package.has_cpu else None


def _build(name: str, kind: str) -> str:
    if name in ("torch", "pytorch", ""):
        return _installs(f"a build for {kind}")
    return f"a build of {name} for {kind}; take the one that matches the device's torch"


def _installs(what: str) -> str:
    return f"{what}; for other devices: {vendor_text.installs()}"


def _name_of(text: str) -> str:
    """The normalised name of what a requirement names; empty for an option and for a path."""
    text = text.strip()
    if wheel := _WHEEL.match(text):
        return _normalised(wheel[1])
    if repository := _REPOSITORY.match(text.partition(" @ ")[2].strip() or text):
        return _normalised(repository[2] or repository[1])
    match = _NAME.match(text)
    if match is None or "/" in text.partition(" ")[0].partition(";")[0].partition("@")[0]:
        return ""
    return _normalised(match[1])


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).strip("-").lower()


def _package(name: str) -> Package | None:
    name = load_vocabulary().aliases.get(name, name)
    return _by_distribution().get(name) or _by_distribution().get(_BUILD_NUMBER.sub("", name))


@cache
def _by_distribution() -> dict[str, Package]:
    return {_normalised(name): package for package in load_packages().values() for name in package.distributions}
