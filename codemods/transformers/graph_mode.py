"""Graph mode: ``torch.compile``, TorchScript, and models that are trained without either. Off unless asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import ClassVar

import libcst as cst

from codemods.findings import Tier
from codemods.transformers import graph_facts
from codemods.transformers.base import Codemod
from codemods.transformers.expressions import argument, string_value
from codemods.transformers.training_models import TrainedModel, is_module_class, makes_module, trained_models

_COMPILE = "torch.compile"
_TORCHSCRIPT = {"torch.jit.script", "torch.jit.trace", "torch.jit.trace_module", "torch.jit.script_if_tracing"}
_WITHOUT_COMPILER = ("eager", "aot_eager", "aot_eager_decomp_partition")
_GRAPH_MODES = ("reduce-overhead", "max-autotune")
_DEFAULT, _AT_RUN_TIME, _OTHER = "default", "at run time", "other"


class GraphMode(Codemod):
    """Gives compiled code the compiler of the selected device, and compiles training models there."""

    family: ClassVar[str] = "graph"

    def places(self) -> Iterable[int]:
        return self._models

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """``torch.compile``, called, as a decorator or as a value"""
        if original_node.attr.value == "_orig_mod":
            self.report(
                "UC631", original_node, "where the device has no compiler, the model is not wrapped and lacks it"
            )
        parent = self.parent()
        if isinstance(parent, cst.Attribute | cst.AssignTarget | cst.Del) or self.qualified(original_node) != _COMPILE:
            return updated_node
        return self._compile(original_node, updated_node)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """``compile`` after ``from torch import compile``"""
        parent = self.parent()
        is_read = isinstance(parent, cst.Call) and parent.func is original_node
        is_read = is_read or (isinstance(parent, cst.Arg) and parent.value is original_node)
        if not (is_read or isinstance(parent, cst.Decorator)) or self.qualified(original_node) != _COMPILE:
            return updated_node
        return self._compile(original_node, updated_node)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self.qualified(original_node.func)
        if name == _COMPILE:
            self._report_options(original_node)
        elif name == "torch._dynamo.optimize":
            self.report("UC632", original_node.func, "an older spelling of torch.compile")
        elif name in _TORCHSCRIPT:
            self.report("UC635", original_node.func, graph_facts.torchscript())
        elif self._is_compile_of_module(original_node):
            return self._module_compile(original_node, updated_node)
        return updated_node

    def leave_Decorator(self, original_node: cst.Decorator, updated_node: cst.Decorator) -> cst.Decorator:
        if self.qualified(original_node.decorator) in _TORCHSCRIPT:
            self.report("UC635", original_node.decorator, graph_facts.torchscript())
        return updated_node

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.BaseSmallStatement:
        """A model that is trained, where it is built"""
        model = self._models.get(self.offset(original_node))
        if model is None:
            return updated_node
        if model.obstacle:
            self.report("UC634", original_node, model.obstacle)
            return updated_node
        compiled = self.call_helper("graph_mode", updated_node.value)
        replacement = updated_node.with_changes(value=compiled)
        return self.rewrite("UC634", original_node, replacement, graph_facts.compilers())

    @cached_property
    def _models(self) -> Mapping[int, TrainedModel]:
        """The models that are trained in this file, by the place of the statement that builds them."""
        module = self.context.module
        return {module.lines.start(model.assignment): model for model in trained_models(module)}

    # -- torch.compile -----------------------------------------------------------------------------------------------

    def _compile(self, original: cst.Attribute | cst.Name, updated: cst.Attribute | cst.Name) -> cst.BaseExpression:
        call = self.parent()
        backend = self._backend(call) if isinstance(call, cst.Call) and call.func is original else _DEFAULT
        if backend == _OTHER:
            return updated  # reported with the call
        return self.rewrite("UC631", original, self.helper("compile"), graph_facts.compilers())

    def _report_options(self, call: cst.Call) -> None:
        """Options that mean CUDA: a backend of its own, modes that record CUDA graphs."""
        backend = argument(call, None, "backend")
        if backend is not None and self._backend(call) == _OTHER:
            name = string_value(backend.value) or ""
            if name in _WITHOUT_COMPILER:
                self.report("UC632", backend.value, "it compiles nothing and works on every device", tier=Tier.NOTE)
            else:
                self.report("UC632", backend.value, graph_facts.graph_backends() if "graph" in name else "")
        mode = argument(call, None, "mode")
        if mode is not None and string_value(mode.value) in _GRAPH_MODES:
            self.report("UC633", mode.value, graph_facts.graph_backends())

    def _backend(self, call: cst.Call) -> str:
        """Which backend a call of ``torch.compile`` asks for."""
        backend = argument(call, None, "backend")
        value = backend.value if backend is not None else cst.Name("None")
        if isinstance(value, cst.Name) and value.value == "None":
            return _DEFAULT
        text = string_value(value)
        names, offset = self.context.module.names, self.offset(value)
        if text is None and isinstance(value, cst.Name):
            text = names.string(value.value, offset)
            if text is None and any(b.kind in ("import", "definition") for b in names.bindings(value.value, offset)):
                return _OTHER
        if text is not None:
            return _DEFAULT if text == "inductor" else _OTHER
        is_setting = isinstance(value, cst.Name | cst.Attribute | cst.Subscript) and self.qualified(value) is None
        return _AT_RUN_TIME if is_setting else _OTHER

    # -- Module.compile ----------------------------------------------------------------------------------------------

    def _is_compile_of_module(self, call: cst.Call) -> bool:
        """``model.compile(...)`` where this file tells that the model is a module of torch."""
        function = call.func
        if not isinstance(function, cst.Attribute) or function.attr.value != "compile":
            return False
        receiver = function.value
        if not isinstance(receiver, cst.Name) or not isinstance(self.parent(), cst.Expr):
            return False
        module, offset = self.context.module, self.offset(receiver)
        if receiver.value == "self":
            classes = [s for s in module.statements.path_to(offset) if isinstance(s, ast.ClassDef)]
            return bool(classes) and is_module_class(classes[-1].name, offset, module)
        values = module.names.values(receiver.value, offset) or []
        return bool(values) and all(makes_module(value, module, strict=True) for value in values)

    def _module_compile(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        self._report_options(original)
        if self._backend(original) == _OTHER:
            return updated
        receiver = cst.ensure_type(updated.func, cst.Attribute).value
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if updated.args else cst.MaybeSentinel.DEFAULT
        args = [cst.Arg(receiver, comma=comma), *updated.args]
        replacement = updated.with_changes(func=self.helper("compile_module"), args=args)
        return self.rewrite("UC631", original, replacement, graph_facts.compilers())
