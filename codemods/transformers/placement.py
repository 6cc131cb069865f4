"""Moves to the device: ``.cuda()`` in every form, and ``.cuda`` that is not called."""

from __future__ import annotations

import ast

import libcst as cst

from codemods.analysis.names import dotted_name as ast_dotted_name
from codemods.analysis.project import OwnCuda
from codemods.findings import Tier
from codemods.transformers.base import Codemod, arguments, dotted_name
from codemods.transformers.expressions import NO_SPACE, argument, cuda_device, has_star

_TENSOR_METHODS = {"cuda", "to", "float", "half", "double", "long", "int", "bool", "bfloat16", "cpu", "detach", "clone"}


class Placement(Codemod):
    """Turns moves to CUDA into moves to the selected device."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        function = original_node.func
        if not isinstance(function, cst.Attribute) or not isinstance(updated_node.func, cst.Attribute):
            return updated_node
        if function.attr.value == "cuda":
            return self._cuda_call(original_node, updated_node, function, updated_node.func)
        return updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if original_node.attr.value == "cuda" and self._is_taken_as_value(original_node):
            self.report("UC105", original_node)
        return updated_node

    # -- .cuda(...) ------------------------------------------------------------------------------------------------

    def _cuda_call(
        self, original: cst.Call, updated: cst.Call, function: cst.Attribute, kept: cst.Attribute
    ) -> cst.BaseExpression:
        receiver = function.value
        if self._is_function_of_module(receiver):
            return updated
        if isinstance(receiver, cst.Call) and dotted_name(receiver.func) == "super":
            self.report("UC106", original, "the method of the base class is called")
            return updated
        own = self._own_class(receiver)
        if own is not None:
            self.report("UC106", original, f"class {own.name} defines it")
            return updated
        similar = self._similar_class(receiver)
        if similar is not None:
            self.report("UC106", original, f"it may be a {similar.name}, which defines `cuda` but no `to`")
            return updated
        if self._is_storage_of_map_location(receiver):
            return updated
        if has_star(original):
            self.report("UC101", original, "its arguments cannot be seen", tier=Tier.MANUAL)
            return updated
        args = self._arguments_of_to(original, updated)
        if args is None:
            self.report("UC101", original, "its arguments are not those of torch's `cuda`", tier=Tier.MANUAL)
            return updated
        replacement = updated.with_changes(func=kept.with_changes(attr=cst.Name("to")), args=args)
        return self.rewrite("UC101", original, replacement)

    def _arguments_of_to(self, original: cst.Call, updated: cst.Call) -> list[cst.Arg] | None:
        """The arguments of ``.to`` that mean the same, ``None`` if one of them is not known."""
        device = argument(original, 0, "device")
        blocking = argument(original, 1, "non_blocking")
        layout = argument(original, 2, "memory_format")
        if len([arg for arg in (device, blocking, layout) if arg is not None]) != len(original.args):
            return None
        place = self._device_argument(original, updated, device)
        named = [
            updated.args[original.args.index(arg)].with_changes(keyword=cst.Name(name), equal=NO_SPACE)
            for arg, name in ((blocking, "non_blocking"), (layout, "memory_format"))
            if arg is not None
        ]
        if device is not None and original.args[0] is device:
            return [updated.args[0].with_changes(value=place, keyword=None, equal=cst.MaybeSentinel.DEFAULT), *named]
        if device is not None:
            return arguments([place, *(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in named)])
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if named else cst.MaybeSentinel.DEFAULT
        return [cst.Arg(place, comma=comma), *named]

    def _device_argument(self, original: cst.Call, updated: cst.Call, device: cst.Arg | None) -> cst.BaseExpression:
        if device is None or (isinstance(device.value, cst.Name) and device.value.value == "None"):
            return self.device()
        same_place = _device_of_tensor(device.value, updated.args[original.args.index(device)].value)
        if same_place is not None:
            return same_place
        value = updated.args[original.args.index(device)].value
        literal = cuda_device(device.value)
        if literal is not None:
            return self.device(literal.index)
        if self.qualified(device.value.func if isinstance(device.value, cst.Call) else device.value) in (
            "torch.device",
            "torch.cuda.current_device",
        ):
            return value if isinstance(device.value, cst.Call) else self.device(value)
        return self.device(value)

    # -- who is moved ----------------------------------------------------------------------------------------------

    def _is_function_of_module(self, receiver: cst.BaseExpression) -> bool:
        """``mylib.cuda(...)`` after ``import mylib``: a function of that module, not a move."""
        if not isinstance(receiver, cst.Name):
            return False
        bindings = self.context.module.names.bindings(receiver.value, self.offset(receiver))
        return any(isinstance(b.node, ast.alias) and b.target == b.node.name for b in bindings)

    def _own_class(self, receiver: cst.BaseExpression) -> OwnCuda | None:
        """The class of the repository that the receiver is an instance of, if it has a ``cuda`` of its own."""
        if not self.context.project.own_cuda:
            return None
        name = self._class_name(receiver)
        return self.context.project.own_cuda.get(name) if name else None

    def _class_name(self, receiver: cst.BaseExpression) -> str | None:
        """The name of the class that an expression is an instance of, where the code says so."""
        if isinstance(receiver, cst.Call):
            function = receiver.func
            if isinstance(function, cst.Attribute) and function.attr.value in _TENSOR_METHODS:
                return self._class_name(function.value)
            own = self._function(function.value, self.offset(function)) if isinstance(function, cst.Name) else None
            if own is not None:
                return self._class_returned_by(own)
            return (dotted_name(function) or "").split(".")[-1] or None
        if isinstance(receiver, cst.Name):
            return self._class_of_name(receiver)
        return None

    def _class_of_name(self, receiver: cst.Name) -> str | None:
        names = self.context.module.names
        offset = self.offset(receiver)
        for binding in names.bindings(receiver.value, offset):
            made = self._class_made_by(binding.value) if isinstance(binding.value, ast.Call) else None
            if made is not None:
                return made
            if isinstance(binding.node, ast.arg) and binding.node.annotation is not None:
                return _last(binding.node.annotation)
        if receiver.value in ("self", "cls"):
            around = self.context.module.statements.path_to(offset)
            return next((s.name for s in reversed(around) if isinstance(s, ast.ClassDef)), None)
        return None

    def _class_made_by(self, call: ast.Call) -> str | None:
        """The class of what a call returns: of a constructor, of torch, of a function of this file that says so."""
        names, offset = self.context.module.names, self.context.module.lines.start(call)
        name = _last(call.func)
        if (names.qualified(ast_dotted_name(call.func) or "", offset) or "").startswith("torch."):
            return name
        function = self._function(call.func.id, offset) if isinstance(call.func, ast.Name) else None
        if function is not None:
            return self._class_returned_by(function)
        return name if name[:1].isupper() else None

    def _function(self, name: str, offset: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function of this file that a name means."""
        nodes = (binding.node for binding in self.context.module.names.bindings(name, offset))
        return next((node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)), None)

    def _class_returned_by(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
        if function.returns is not None:
            return _last(function.returns) or None
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        made = {_last(value.func) for value in returned if isinstance(value, ast.Call)}
        return next((name for name in sorted(made) if name in self.context.project.own_cuda), None)

    def _similar_class(self, receiver: cst.BaseExpression) -> OwnCuda | None:
        """A class with ``cuda`` but without ``to`` that a receiver of unknown type is named after."""
        name = (dotted_name(receiver) or "").split(".")[-1].lower()
        if len(name) < 3 or self._class_name(receiver):
            return None
        lacking = (own for own in self.context.project.own_cuda.values() if not own.has_to)
        return next((own for own in lacking if own.name.lower() in name or name in own.name.lower()), None)

    def _is_storage_of_map_location(self, receiver: cst.BaseExpression) -> bool:
        """``lambda storage, loc: storage.cuda(i)``: the rule for ``map_location`` replaces the whole lambda."""
        function = self.parent()
        if not isinstance(function, cst.Lambda) or not isinstance(receiver, cst.Name):
            return False
        parameters = [param.name.value for param in function.params.params]
        return len(parameters) == 2 and parameters[0] == receiver.value

    # -- .cuda as a value ------------------------------------------------------------------------------------------

    def _is_taken_as_value(self, node: cst.Attribute) -> bool:
        """Whether ``x.cuda`` is handed on as a method: passed to a call or put into a variable that is called."""
        parent = self.parent()
        if not isinstance(parent, cst.Arg):
            return self.qualified(node) in ("torch.Tensor.cuda", "torch.nn.Module.cuda")
        name = self.qualified(node)
        if name is not None:
            return name in ("torch.Tensor.cuda", "torch.nn.Module.cuda")
        call = self.parent(2)
        is_flag = _is_flag_holder(dotted_name(node.value))
        return isinstance(call, cst.Call) and parent.keyword is None and not is_flag and _maps(call)


def _is_flag_holder(name: str | None) -> bool:
    last = (name or "").split(".")[-1].lower()
    return last in (
        "self",
        "args",
        "opt",
        "opts",
        "options",
        "config",
        "cfg",
        "conf",
        "hparams",
        "params",
        "flags",
        "cls",
    )


def _maps(call: cst.Call) -> bool:
    """A call that applies what it is given."""
    return (dotted_name(call.func) or "").split(".")[-1] in ("map", "apply", "apply_", "partial", "tree_map", "_apply")


def _device_of_tensor(original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression | None:
    """``a.get_device()`` as a device is ``a.device``."""
    if not isinstance(original, cst.Call) or original.args or not isinstance(updated, cst.Call):
        return None
    function = updated.func
    asks = isinstance(function, cst.Attribute) and function.attr.value == "get_device"
    return function.with_changes(attr=cst.Name("device")) if asks else None


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.strip().split(".")[-1]
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
