"""Container images that hold CUDA."""

from __future__ import annotations

from codemods import vendor_text
from codemods.companions.remarks import Remark
from codemods.companions.vocabulary import load_vocabulary


def image_remark(image: str, start: int, end: int) -> Remark | None:
    """What there is to say of an image, given with its registry and tag."""
    if image.lower() not in load_vocabulary().images:
        return None
    return Remark(start, end, "UC731", vendor_text.installs())
