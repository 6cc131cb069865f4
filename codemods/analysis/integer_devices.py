"""Integers that mean a CUDA device: the current device, a local rank, a command-line option for a GPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from codemods.analysis.names import Names, dotted_name
from codemods.source.facts import Fact, is_number, is_text

if TYPE_CHECKING:
    from codemods.analysis.module import Module

INDEX_NAME = re.compile(r"(?:^|_)(?:local_)?rank$|(?:^|_)gpu(?:_?id|_?idx|_?index)?$", re.IGNORECASE)
"""Names of variables, parameters and options that hold such an integer."""
_CALLED_DEVICE = re.compile(r"device|(?:^|_)dev(?:$|_)", re.IGNORECASE)
_TAKE_DEVICE_FIRST = {"to", "cuda", "set_device", "get_device_name", "synchronize"}
"""Functions and methods whose first argument may be a device as well as an integer."""
_COUNTS = re.compile(r"device_count|num_gpus|n_?gpus?|gpus_per_node", re.IGNORECASE)
_WORDS = (b"current_device", b"local_rank", b"LOCAL_RANK", b"device_count", b"gpu", b"GPU")
"""One of them stands wherever such an integer is assigned."""
_ARGUMENTS = (re.compile(rb"rank(?=[,)])"), re.compile(rb"gpu(?:_?(?:id|idx|index))?(?=[,)])"))
_NAME = re.compile(rb"(?:(\w+)[ \t]*=[ \t]*)?([\w.]+)\Z")
_FUNCTION = re.compile(rb"(\w+)\Z")
_FARTHEST = 400
"""Bytes that are looked back from an argument to the opening parenthesis of its call."""


def index_variables(module: Module) -> set[str]:
    """The names, in any scope of a module, that are assigned such an integer."""
    if not any(word in module.utf8 for word in _WORDS):
        return set()  # most modules: the search through all names took a twentieth of the time
    return {
        name
        for scope in module.names.scopes
        for name, bindings in scope.bindings.items()
        if any(b.kind == "assign" and b.value is not None and is_index(b.value) for b in bindings)
    }


def device_variables(module: Module) -> set[str]:
    """The index variables that are called devices and used for nothing else: a device can take the integer's place."""
    variables = {name for name in module.index_variables if _CALLED_DEVICE.search(name)}
    if not variables:
        return set()
    taken = set(_offsets_taken_for_devices(module))
    return {
        name
        for name in variables
        if _is_local_index(module.names, name)
        and all(offset in taken for used, offset in module.names.uses if used == name)
    }


def _is_local_index(names: Names, name: str) -> bool:
    """Whether a name is bound in functions alone, and assigned nothing but integers that mean a device."""
    scopes = [scope for scope in names.scopes if name in scope.bindings]
    bindings = [binding for scope in scopes for binding in scope.bindings[name]]
    return all(scope.kind == "function" for scope in scopes) and all(
        b.kind == "assign" and b.value is not None and is_index(b.value) for b in bindings
    )


def _offsets_taken_for_devices(module: Module) -> Iterator[int]:
    """Where a variable stands as an argument that takes a device."""
    for call in ast.walk(module.tree):
        if isinstance(call, ast.Call):
            first = call.args[:1] if _takes_device_first(module, call) else []
            for value in (*first, *(keyword.value for keyword in call.keywords if keyword.arg == "device")):
                yield module.lines.start(value)


def _takes_device_first(module: Module, call: ast.Call) -> bool:
    last = str(getattr(call.func, "attr", getattr(call.func, "id", "")))
    if last != "device":
        return last in _TAKE_DEVICE_FIRST
    # The helper's `device` takes an integer: code that is converted must not look as if it held a device.
    name = module.names.qualified(dotted_name(call.func) or "", module.lines.start(call))
    return (name or "").startswith("torch.")


def index_parameters(names: Names, given: Collection[tuple[str, str | int]]) -> set[str]:
    """The parameters of the module's functions that are given such an integer, by ``index_arguments``."""
    functions = (scope.node for scope in names.scopes if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {name for function in functions for name in _given(function, given)} if given else set()


def is_index_parameter(
    function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, given: Collection[tuple[str, str | int]]
) -> bool:
    """Whether a parameter of a function is given such an integer."""
    return name in _given(function, given)


def _given(function: ast.FunctionDef | ast.AsyncFunctionDef, given: Collection[tuple[str, str | int]]) -> Iterator[str]:
    positional = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    skipped = bool(positional) and positional[0] in ("self", "cls")
    for position, name in enumerate(positional[skipped:]):
        if (function.name, position) in given or (function.name, name) in given:
            yield name
    yield from (arg.arg for arg in function.args.kwonlyargs if (function.name, arg.arg) in given)


def is_index(value: ast.expr) -> bool:
    """Whether an expression is such an integer by what it is made of."""
    if isinstance(value, ast.Call):
        owner, _, name = (dotted_name(value.func) or "").rpartition(".")
        if name == "int" and len(value.args) == 1:
            return "LOCAL_RANK" in _texts(value.args[0])
        return name == "get_node_local_rank" or (name == "current_device" and _is_of_cuda(owner))
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod) and _is_count(value.right)


def index_arguments(raw: bytes) -> set[tuple[str, str | int]]:
    """The functions that are called with such an integer, and the keyword or position (from 0) that it has there."""
    matches = (match for pattern in _ARGUMENTS for match in pattern.finditer(raw))
    found = (_argument_at(raw[max(0, match.end() - _FARTHEST) : match.end()]) for match in matches)
    return {argument for argument in found if argument is not None}


def _unpack(value: Any) -> set[tuple[str, str | int]]:
    return {(is_text(name), place if isinstance(place, str) else is_number(place)) for name, place in value}


INDEX_ARGUMENTS = Fact("index arguments", index_arguments, lambda found: sorted(found, key=str), _unpack)


def _argument_at(before: bytes) -> tuple[str, str | int] | None:
    """The function and the place of the argument that a text ends with."""
    name = _NAME.search(before)
    if name is None or not INDEX_NAME.search(name[2].decode("utf-8", "replace").rpartition(".")[2]):
        return None
    depth = commas = 0
    for offset in range(name.start() - 1, -1, -1):
        char = before[offset : offset + 1]
        if char in b")]}":
            depth += 1
        elif char in b"[{" or (char == b"(" and depth):
            depth -= 1
        elif char == b"(":
            function = _FUNCTION.search(before[:offset])
            place = name[1].decode() if name[1] else commas
            known = function is not None and not function[1].startswith(b"__")  # constructors all share a name
            return (function[1].decode("utf-8", "replace"), place) if function is not None and known else None
        elif char == b"," and not depth:
            commas += 1
        if depth < 0:
            return None
    return None


def _is_of_cuda(owner: str) -> bool:
    """Whether a module with a ``current_device`` is CUDA's, under any name; that of another device is not."""
    return owner.partition(".")[0] != "torch" or owner == "torch.cuda"


def _is_count(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else value
    return bool(_COUNTS.search((dotted_name(called) or "").split(".")[-1]))


def _texts(value: ast.expr) -> set[object]:
    return {node.value for node in ast.walk(value) if isinstance(node, ast.Constant)}
