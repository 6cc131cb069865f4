"""Small questions about libcst expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst

NO_SPACE = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
"""The ``=`` of a keyword argument."""
_CUDA = re.compile(r"cuda(?::(\d+))?\Z")


@dataclass(frozen=True)
class CudaDevice:
    """A device string that names CUDA, and its index if it has one."""

    index: cst.BaseExpression | None


def string_value(node: cst.CSTNode | None) -> str | None:
    """The text of a string literal, ``None`` for anything else."""
    if isinstance(node, cst.SimpleString):
        return _simple_value(node)
    if isinstance(node, cst.ConcatenatedString):
        value = node.evaluated_value
        return value if isinstance(value, str) else None
    return None


def _simple_value(node: cst.SimpleString) -> str | None:
    text = node.value
    quote = text[0]
    if quote in "'\"" and "\\" not in text:  # nearly all of them; the general way costs as much as parsing a statement
        width = 3 if text[:3] == quote * 3 and len(text) >= 6 else 1
        return text[width:-width]
    value = node.evaluated_value
    return value if isinstance(value, str) else None


def cuda_device(original: cst.CSTNode, updated: cst.CSTNode | None = None) -> CudaDevice | None:
    """The CUDA device that an expression spells as a string, by whichever of the ways to write one.

    ``original`` tells what is written; the index comes from ``updated``, so that edits inside it are kept.
    """
    updated = original if updated is None else updated
    text = string_value(original)
    if text is not None:
        match = _CUDA.match(text)
        return None if match is None else CudaDevice(cst.Integer(str(int(match[1]))) if match[1] else None)
    if isinstance(original, cst.FormattedString) and isinstance(updated, cst.FormattedString):
        return _formatted(original, updated)
    if isinstance(original, cst.BinaryOperation) and isinstance(updated, cst.BinaryOperation):
        return _operation(original, updated)
    if isinstance(original, cst.Call) and isinstance(updated, cst.Call):
        return _format_call(original, updated)
    return None


def _formatted(original: cst.FormattedString, updated: cst.FormattedString) -> CudaDevice | None:
    """``f"cuda:{i}"``, and ``f"cuda"`` without anything to format"""
    if len(original.parts) == 1 and isinstance(original.parts[0], cst.FormattedStringText):
        return CudaDevice(None) if original.parts[0].value == "cuda" else None
    if len(original.parts) != 2:
        return None
    head, value = original.parts
    kept = updated.parts[1]
    if not (isinstance(head, cst.FormattedStringText) and head.value == "cuda:"):
        return None
    if not (isinstance(value, cst.FormattedStringExpression) and isinstance(kept, cst.FormattedStringExpression)):
        return None
    if value.conversion or value.format_spec or value.equal:
        return None
    return CudaDevice(kept.expression)


def _operation(original: cst.BinaryOperation, updated: cst.BinaryOperation) -> CudaDevice | None:
    """``"cuda:%d" % i`` and ``"cuda:" + str(i)``"""
    text = string_value(original.left)
    if isinstance(original.operator, cst.Modulo) and text in ("cuda:%d", "cuda:%s", "cuda:%i"):
        return _single(updated.right)
    if isinstance(original.operator, cst.Add) and text == "cuda:":
        return CudaDevice(_without_str(updated.right))
    return None


def _single(value: cst.BaseExpression) -> CudaDevice | None:
    if not isinstance(value, cst.Tuple):
        return CudaDevice(value)
    return CudaDevice(value.elements[0].value) if len(value.elements) == 1 else None


def _without_str(value: cst.BaseExpression) -> cst.BaseExpression:
    is_str = isinstance(value, cst.Call) and isinstance(value.func, cst.Name) and value.func.value == "str"
    return value.args[0].value if is_str and isinstance(value, cst.Call) and len(value.args) == 1 else value


def _format_call(original: cst.Call, updated: cst.Call) -> CudaDevice | None:
    """``"cuda:{}".format(i)``"""
    function = original.func
    if not (isinstance(function, cst.Attribute) and function.attr.value == "format" and len(original.args) == 1):
        return None
    argument = original.args[0]
    if argument.star or argument.keyword or string_value(function.value) not in ("cuda:{}", "cuda:{0}", "cuda:{:d}"):
        return None
    return CudaDevice(updated.args[0].value)


_DEVICE = re.compile(r"(?:cpu|cuda|gpu|mps|meta|auto|npu|xpu|mlu|musa|hpu|gcu|supa|xla|tpu|sdaa)(?::\d+)?\Z")
_OTHERS = {"npu", "xpu", "mlu", "musa", "hpu", "gcu", "supa", "xla", "sdaa"}


def names_other_devices(node: cst.CSTNode) -> bool:
    """Whether the strings in an expression name other accelerators: it is not CUDA's alone."""
    text = string_value(node)
    return is_other_device(text) if text is not None else any(map(names_other_devices, node.children))


def is_other_device(text: str) -> bool:
    """Whether a text is the name of an accelerator other than CUDA and Apple's."""
    return text in _OTHERS


def lists_other_things(node: cst.List | cst.Tuple | cst.Set) -> bool:
    """Whether a list holds a text that is no device at all: ``["cuda", "memory", "stack"]`` are labels."""
    texts = [text for element in node.elements if (text := string_value(element.value)) is not None]
    return any(not _DEVICE.match(text) for text in texts)


def compares_with_itself(node: cst.Comparison) -> bool:
    """Whether both sides of a comparison are written alike."""
    sides = (node.left, *(target.comparator for target in node.comparisons))
    return len({cst.Module([]).code_for_node(side) for side in sides}) == 1


def argument(call: cst.Call, position: int | None, *keywords: str) -> cst.Arg | None:
    """The argument at a position or under one of the keywords."""
    for index, arg in enumerate(call.args):
        if arg.star:
            if position is not None and arg.star == "*" and index <= position:
                position = None
        elif arg.keyword is not None:
            if arg.keyword.value in keywords:
                return arg
        elif index == position:
            return arg
    return None


def has_star(call: cst.Call) -> bool:
    """Whether the call has ``*args`` or ``**kwargs``, so that not all of its arguments can be seen."""
    return any(arg.star for arg in call.args)


def with_value(call: cst.Call, position: int, value: cst.BaseExpression) -> cst.Call:
    """The call with another value for the argument at a position."""
    args = [*call.args]
    args[position] = args[position].with_changes(value=value)
    return call.with_changes(args=args)
