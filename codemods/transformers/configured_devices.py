"""Devices that come from outside the code: ``torch.device(cfg.device)``, ``x.to(config["device"])``, parameters that a
command line fills."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from codemods.analysis.names import dotted_name as ast_dotted_name
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.expressions import string_value, with_value
from codemods.transformers.roles import DEVICE_NAME, TYPE_NAME, Role, argument_role

_HOLDER = re.compile(r"(?:^|_)(?:args?|opts?|options|cfg|conf|config|configs|hparams|flags|settings)$", re.IGNORECASE)

_LIBRARIES = ("fire", "typer")
"""Those whose values cannot be translated where a parameter is defined, as an option of click can."""


class ConfiguredDevices(Codemod):
    """Takes a CUDA device that a user names for the selected device, where the code uses it as a device."""

    def places(self) -> Iterator[int]:
        """Uses of the parameters that a command line fills."""
        names = {name for function in self._commands for name in _device_parameters(function)}
        yield from (offset for name, offset in self.context.module.names.uses if name in names)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        for position, arg in enumerate(original_node.args):
            if arg.star or not (self._is_setting(arg.value) or self._is_filled(arg.value)):
                continue
            device = self.device(updated_node.args[position].value)
            role = argument_role(self, original_node, arg)
            if role is Role.TORCH_DEVICE:
                return self.rewrite("UC207", original_node, device)
            if role is Role.OBJECT:
                return self.rewrite("UC207", original_node, with_value(updated_node, position, device))
        return updated_node

    def _is_setting(self, node: cst.BaseExpression) -> bool:
        """Whether an expression reads a setting that can name CUDA."""
        name, holder = _setting(node)
        if (
            not name
            or name.lower() not in self.context.project.cuda_settings
            or holder is None
            or self._is_written_here(holder)
        ):
            return False
        return any(map(_HOLDER.search, (dotted_name(holder) or "").split(".")))

    def _is_filled(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a parameter for a device that Fire or Typer fills from the command line."""
        if not isinstance(node, cst.Name):
            return False
        bindings = self.context.module.names.bindings(node.value, self.offset(node))
        parameters = (b.node for b in bindings if isinstance(b.node, ast.arg))
        return len(bindings) == 1 and any(
            arg in (*function.args.args, *function.args.kwonlyargs) and arg.arg in _device_parameters(function)
            for arg in parameters
            for function in self._commands
        )

    @cached_property
    def _commands(self) -> list[ast.FunctionDef]:
        """The functions of the module that are commands."""
        module = self.context.module
        if not any(True for library in _LIBRARIES for _ in module.names.imported_as(library)):
            return []
        functions = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef)]
        called = {
            arg.id for call in ast.walk(module.tree) for arg in _handed_to_fire(call) if isinstance(arg, ast.Name)
        }
        return [f for f in functions if f.name in called or any(map(_is_command, f.decorator_list))]

    def _is_written_here(self, holder: cst.CSTNode) -> bool:
        """Whether the settings are a dictionary of this module, whose devices are converted where they stand."""
        values = self.context.module.names.values(dotted_name(holder) or "", self.offset(holder))
        return bool(values) and all(isinstance(value, ast.Dict) for value in values or ())


def _setting(node: cst.BaseExpression) -> tuple[str, cst.CSTNode | None]:
    """The name of a setting and what it is taken from: ``cfg.device``, ``cfg["device"]``, ``cfg.get("device")``."""
    if isinstance(node, cst.Attribute):
        return node.attr.value, node.value
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        return string_value(node.slice[0].slice.value) or "", node.value
    function = node.func if isinstance(node, cst.Call) else None
    if (
        isinstance(node, cst.Call)
        and isinstance(function, cst.Attribute)
        and function.attr.value == "get"
        and node.args
    ):
        return string_value(node.args[0].value) or "", function.value
    return "", None


def _device_parameters(function: ast.FunctionDef) -> set[str]:
    """The parameters of a command that are called devices and are no types."""
    names = {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}
    return {name for name in names if DEVICE_NAME.search(name) and not TYPE_NAME.search(name)}


def _handed_to_fire(node: ast.AST) -> list[ast.expr]:
    """The arguments of ``fire.Fire(main)`` and ``typer.run(main)``."""
    is_start = isinstance(node, ast.Call) and ast_dotted_name(node.func) in ("fire.Fire", "Fire", "typer.run")
    return node.args[:1] if is_start and isinstance(node, ast.Call) else []


def _is_command(decorator: ast.expr) -> bool:
    """``@app.command()``"""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(function, ast.Attribute) and function.attr == "command"
