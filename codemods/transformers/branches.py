"""Whether a block of code can run on another device than CUDA."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from codemods.analysis.module import Module
from codemods.analysis.names import dotted_name
from codemods.cuda_api import load_cuda_api

_MOVES = {
    "cuda",
    "to",
    "cpu",
    "contiguous",
    "detach",
    "clone",
    "item",
    "backward",
    "step",
    "zero_grad",
    "train",
    "eval",
    "get_device",
}
_BUILTINS = {
    "print",
    "len",
    "str",
    "int",
    "float",
    "bool",
    "list",
    "tuple",
    "dict",
    "set",
    "range",
    "min",
    "max",
    "zip",
}
_CONTAINERS = {
    "append",
    "extend",
    "items",
    "keys",
    "values",
    "get",
    "update",
    "format",
    "join",
    "info",
    "debug",
    "warning",
    "print",
    "log",
    "write",
    "setdefault",
}
_TENSOR_TYPES = {
    "float",
    "half",
    "double",
    "long",
    "int",
    "bool",
    "bfloat16",
    "type",
    "view",
    "size",
    "unsqueeze",
    "squeeze",
}
_CUSTOM_OPERATORS = ("torch.ops.", "torch.classes.")
_PORTABLE_METHODS = _MOVES | _CONTAINERS | _TENSOR_TYPES


def choice_is_portable(statement: ast.If, rest: Sequence[ast.stmt], module: Module) -> bool:
    """Whether either answer to the test of an ``if`` may come out on another device.

    Args:
        rest: the statements behind it in the same block; they depend on the answer too if a branch leaves the block
    """
    branches = [*statement.body, *statement.orelse]
    if isinstance(statement.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break):
        branches += rest
    does_something = any(isinstance(node, ast.Call) for part in branches for node in ast.walk(part))
    return does_something and is_portable(branches, module)


def is_portable(body: Sequence[ast.stmt], module: Module, offset: int | None = None) -> bool:
    """Whether all that a block calls is plain torch, a conversion, or a built-in.

    Args:
        offset: where the block stands, for trees that were not parsed with the module
    """
    return all(_is_portable_node(node, module, offset) for statement in body for node in ast.walk(statement))


def _is_portable_node(node: ast.AST, module: Module, offset: int | None) -> bool:
    if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
        return False
    if not isinstance(node, ast.Call):
        return True
    dotted = dotted_name(node.func)
    name = module.names.qualified(dotted, module.lines.start(node) if offset is None else offset) if dotted else None
    if name is not None and name.startswith("torch."):
        if name.startswith(_CUSTOM_OPERATORS):
            return False
        known = load_cuda_api().get(name)
        return known is None or known.action == "helper"
    if isinstance(node.func, ast.Name):
        return node.func.id in _BUILTINS and not module.names.bindings(node.func.id, offset or module.lines.start(node))
    if not isinstance(node.func, ast.Attribute) or name is not None:
        return False
    return node.func.attr in _PORTABLE_METHODS or _is_tensor_method(node.func, module, offset)


def _is_tensor_method(method: ast.Attribute, module: Module, offset: int | None) -> bool:
    """Whether a method is torch's own: by its name, ``fill_``, or because torch made what it is called on."""
    if re.fullmatch(r"[a-z]\w*[^_\W]_", method.attr):
        return True
    maker: ast.expr = method.value
    while isinstance(maker, ast.Call) and isinstance(maker.func, ast.Attribute):
        dotted = dotted_name(maker.func)
        name = (
            module.names.qualified(dotted, module.lines.start(maker) if offset is None else offset) if dotted else None
        )
        if name is not None:
            return name.startswith("torch.") and not name.startswith(_CUSTOM_OPERATORS)
        maker = maker.func.value
    return False
