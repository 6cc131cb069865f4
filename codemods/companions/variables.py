"""Environment variables of CUDA, of NCCL and of NVIDIA's containers, wherever they are set."""

from __future__ import annotations

import re

from codemods import vendor_text
from codemods.companions.remarks import Remark
from codemods.companions.vocabulary import load_vocabulary
from codemods.findings import Tier

_INDICES = re.compile(r"\d+(?:,\d+)*\Z")
_CUDA_PATH = re.compile(r"/(?:cuda|cudnn|nccl)\b|/cuda-\d", re.IGNORECASE)


def variable_remark(
    name: str, value: str, start: int, end: int, *, expands: bool = False, maps_mask: bool = True
) -> Remark | None:
    """What there is to say of setting a variable.

    Args:
        name: the variable
        value: what it is set to
        start: where the assignment begins
        end: where it ends
        expands: whether the value is not known before the shell has expanded it
        maps_mask: whether the programs that see it may be those of the repository, whose helper maps a mask
    """
    variables = load_vocabulary().variables
    if name == vendor_text.MASK:
        return Remark(start, end, "UC711", *_mask(value.replace(" ", ""), expands, maps_mask))
    if name in variables["container"]:
        return Remark(start, end, "UC732")
    if name in variables["toolkit"] or (name in variables["search_path"] and _CUDA_PATH.search(value)):
        return Remark(start, end, "UC718", name)
    if name in variables["tuning"]:
        known = vendor_text.counterparts(name)
        # What nobody else reads does no harm elsewhere.
        return Remark(start, end, "UC712", f"{name}: {known}" if known else f"{name}: no counterpart is known",
                      Tier.MANUAL if known else Tier.NOTE)  # fmt: skip
    return None


def _mask(value: str, expands: bool, maps_mask: bool) -> tuple[str, Tier]:
    if value in ("", "-1", "NoDevFiles") and not expands:
        return "it hides all CUDA devices, and no others; AI_DEVICE=cpu chooses the CPU everywhere", Tier.MANUAL
    own = f"the devices' own variables are {vendor_text.visible_devices()}"
    if not maps_mask:
        return f"the program is not known to be one of this repository; {own}", Tier.MANUAL
    if not expands and not _is_ascending(value):
        return f"it is no list of ascending indices, which alone can be given to other devices; {own}", Tier.MANUAL
    return f"a converted program gives these indices to the selected device; {own}", Tier.NOTE


def _is_ascending(value: str) -> bool:
    indices = [int(part) for part in value.split(",")] if _INDICES.match(value) else []
    return bool(indices) and indices == sorted(set(indices))
