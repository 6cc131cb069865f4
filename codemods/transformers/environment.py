"""The world around the program: environment variables, command-line tools, messages of the CUDA run time."""

from __future__ import annotations

import re

import libcst as cst

from codemods import vendor_text
from codemods.findings import Tier
from codemods.transformers.base import Codemod
from codemods.transformers.expressions import string_value

_VARIABLE = re.compile(
    r"(?:CUDA|CUDNN|CUBLAS|NCCL|TORCH_NCCL|NVIDIA|NVTE|PYTORCH_CUDA|PYTORCH_NO_CUDA|TORCH_CUDA)_[A-Z0-9_]+\Z"
)
_TOOL = re.compile(r"\bnvidia-smi\b|\bnvcc\b|\bnsys\b|\bncu\b")
_SORT_KEY = re.compile(r"(?:self_)?cuda_(?:time|memory|memory_usage)(?:_total)?\Z")
_OUT_OF_MEMORY = "CUDA out of memory"
_RUNNERS = {
    "run",
    "call",
    "check_output",
    "check_call",
    "Popen",
    "system",
    "popen",
    "getoutput",
    "getstatusoutput",
    "which",
}


class Environment(Codemod):
    """Reports what only CUDA reads, with what the other devices read."""

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.BaseExpression:
        text = string_value(original_node)
        if text is None or isinstance(self.parent(), cst.Expr):
            return updated_node
        if text == vendor_text.MASK:
            self.report("UC701", original_node, vendor_text.visible_devices())
        elif _VARIABLE.match(text) and self._is_looked_up():
            self.report("UC702", original_node, _counterparts(text))
        elif _TOOL.search(text) and self._is_run():
            self.report("UC703", original_node)
        elif _OUT_OF_MEMORY in text and isinstance(self.parent(), cst.Comparison | cst.ComparisonTarget):
            self.report("UC507", original_node)
        elif _SORT_KEY.match(text):
            self.report("UC506", original_node, tier=Tier.MANUAL)
        return updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """``ProfilerActivity.CUDA``"""
        name = self.qualified(original_node)
        if name in ("torch.profiler.ProfilerActivity.CUDA", "torch.autograd.ProfilerActivity.CUDA"):
            return self.rewrite("UC505", original_node, self.call_helper("profiler_activity"))
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """``torch.random.fork_rng(devices=...)``, which asks CUDA unless told otherwise."""
        if self.qualified(original_node.func) in ("torch.random.fork_rng", "torch.fork_rng"):
            keywords = {arg.keyword.value: arg.value for arg in original_node.args if arg.keyword}
            devices = keywords.get("devices")
            empty = isinstance(devices, cst.List) and not devices.elements
            if "device_type" not in keywords and not empty:
                return self.rewrite("UC508", original_node, updated_node.with_changes(func=self.helper("fork_rng")))
        return updated_node

    def _is_looked_up(self) -> bool:
        """Whether the text is the name of a variable: a key, an argument, or one side of a test."""
        return isinstance(
            self.parent(), cst.Index | cst.Arg | cst.DictElement | cst.Comparison | cst.ComparisonTarget | cst.Element
        )

    def _is_run(self) -> bool:
        """Whether the text is a command that a call starts."""
        for ancestor in reversed(self.context.ancestors):
            if isinstance(ancestor, cst.Call):
                function = ancestor.func
                name = function.attr.value if isinstance(function, cst.Attribute) else getattr(function, "value", "")
                return name in _RUNNERS
        return False


def _counterparts(variable: str) -> str:
    known = vendor_text.counterparts(variable)
    return f"counterparts: {known}" if known else "no counterpart is known"
