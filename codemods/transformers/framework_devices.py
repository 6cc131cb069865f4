"""What else chooses devices: frameworks with a device layer of their own, and functions of the repository."""

from __future__ import annotations

import re

import libcst as cst

from codemods.frameworks import Argument, find_argument, load_layers
from codemods.transformers.base import Codemod

_CHOOSES = re.compile(
    r"_?(?:get|select|choose|pick|find|default|detect|auto)_(?:\w+_)?(?:device|accelerator)(?:_type)?\Z"
)


class FrameworkDevices(Codemod):
    """Reports arguments of frameworks that select CUDA, and what chooses a device beside AI_DEVICE."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self.qualified(original_node.func)
        for arg in original_node.args:
            keyword = arg.keyword.value if arg.keyword else ""
            known = find_argument(name, keyword) if keyword else None
            if known is not None and selects_cuda(known, arg):
                self.report("UC351", arg, known.advice)
        title = next((layer.title for layer in load_layers() if name in (*layer.made_by, *layer.call)), "")
        if title:
            self.report("UC352", original_node, f"{title} chooses here")
        return updated_node

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if _CHOOSES.match(original_node.name.value) and self._names_cuda(original_node):
            self.report("UC353", original_node.name)
        return updated_node

    def _names_cuda(self, node: cst.FunctionDef) -> bool:
        statement = self.context.module.statements.path_to(self.offset(node.name))[-1]
        start, end = self.context.module.lines.start(statement), self.context.module.lines.end(statement)
        return b"cuda" in self.context.module.utf8[start:end]


def selects_cuda(known: Argument, arg: cst.Arg) -> bool:
    """Whether the value of a framework's argument is one of those that select CUDA."""
    return known.values.fullmatch(cst.Module([]).code_for_node(arg.value)) is not None
