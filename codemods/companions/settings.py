"""What a setting and its value mean, be it a key of a configuration file or a flag of a launch line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codemods import vendor_text
from codemods.companions.remarks import Knowledge, Remark
from codemods.companions.vocabulary import load_vocabulary
from codemods.findings import Tier

_DEVICE = re.compile(r"cuda(?::\d+)?\Z", re.IGNORECASE)
_DEFAULT = re.compile(r"\$\{[^{}]*[,:-]\s*(cuda(?::\d+)?|nccl)\s*\}\Z", re.IGNORECASE)
_BACKEND = re.compile(r"(?:(?:\w+:\w+,)*cuda:)?nccl(?:,\w+:\w+)*\Z", re.IGNORECASE)
_INDEX = re.compile(r"\d+(?:,\s*\d+)*\Z")
_PROCESSES = re.compile(r"n_?proc(?:esses)?_per_node\Z")
_COUNT = re.compile(
    r"(?:\w+_)?n?gpus?(?:_(?:ids?|idx|index|indices|nums?|number|count|list|per_\w+))?\Z|(?:(?:use|no|with|enable)_)?cuda\Z"
)
_SAYS_NOTHING = ("type", "name", "value", "default", "_args_")
_MAPPED = "the program gives it to a converted place, where it means the selected device"
_TAKEN = "a converted place takes it for the selected device"


def argument_remark(path: Sequence[str], value: str, start: int, end: int, known: Knowledge) -> Remark | None:
    """What there is to say of a flag, or of a Hydra override, and its value; ``value`` is empty for a switch."""
    name = _last(path)
    value = _without_default(value)
    if _PROCESSES.search(name) and value == "gpu":
        return Remark(start, end, "UC713", "torchrun counts CUDA devices for it; `auto` counts those of other devices")
    if _is_device(name, value):
        return Remark(start, end, "UC713", *_device_detail(path, known))
    if name == "accelerator" and value in ("gpu", "cuda"):
        return Remark(start, end, "UC713", *_accelerator_detail(path, known))
    if _BACKEND.match(value):
        return Remark(start, end, "UC713", *_backend_detail(path, known))
    if _COUNT.match(name) or (name == "device" and _INDEX.match(value)):
        return Remark(start, end, "UC714")
    return None


def value_remark(path: Sequence[str], value: str, start: int, end: int, known: Knowledge) -> Remark | None:
    """What there is to say of a value in a configuration file."""
    name = _last(path)
    value = _without_default(value)
    if name == "accelerator" and value in ("gpu", "cuda"):
        return Remark(start, end, "UC721", *_accelerator_detail(path, known))
    if _is_device(name, value):
        return Remark(start, end, "UC721", *_device_detail(path, known))
    if _BACKEND.match(value):
        return Remark(start, end, "UC722", *_backend_detail(path, known))
    return None


def _is_device(name: str, value: str) -> bool:
    return _DEVICE.match(value) is not None and any(word in name for word in load_vocabulary().device_words)


def _device_detail(path: Sequence[str], known: Knowledge) -> tuple[str, Tier]:
    if known.is_mapped(path):
        return _MAPPED, Tier.NOTE
    return f"{_TAKEN}; for anything else the devices are called {vendor_text.types()}", Tier.MANUAL


def _backend_detail(path: Sequence[str], known: Knowledge) -> tuple[str, Tier]:
    if known.is_mapped(path):
        return _MAPPED, Tier.NOTE
    return f"{_TAKEN}; for anything else the backends are {vendor_text.backends()}", Tier.MANUAL


def _accelerator_detail(path: Sequence[str], known: Knowledge) -> tuple[str, Tier]:
    if known.is_mapped(path):
        return _MAPPED, Tier.NOTE
    return "Lightning finds CUDA and Apple GPUs by it; others need an accelerator class of their own", Tier.MANUAL


def _without_default(value: str) -> str:
    """The value itself, or the default in ``${oc.env:DEVICE,cuda}``."""
    match = _DEFAULT.match(value)
    return match[1] if match else value


def _last(path: Sequence[str]) -> str:
    """The name of a setting: of the one around it where its own says nothing, as in ``device: {type: cuda}``."""
    names = [name.lower().replace("-", "_") for key in path for name in key.split(".")]
    while len(names) > 1 and names[-1] in _SAYS_NOTHING:
        names.pop()
    return names[-1] if names else ""
