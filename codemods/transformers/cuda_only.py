"""What is CUDA's alone: packages, extensions, kernels, patches by vendors. Reported, never rewritten."""

from __future__ import annotations

import ast
import re

import libcst as cst

from codemods.cuda_api import Package, find_package
from codemods.findings import Tier
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.expressions import string_value

_PATCHES = re.compile(r"transfer_to_\w+\Z|torchada\Z|gpu_migration\Z")
_EXTENSIONS = {
    "torch.utils.cpp_extension.CUDAExtension",
    "torch.utils.cpp_extension.load",
    "torch.utils.cpp_extension.load_inline",
}
_QUANTISED = re.compile(r"(?:adamw?|lion|lamb|rmsprop|sgd)\w*8bit", re.IGNORECASE)
_KERNEL_SOURCE = re.compile(r"__global__\s+void|#include\s*<cuda|\bblockIdx\.")


class CudaOnly(Codemod):
    """Names the parts that have no counterpart to rewrite to, with what is known of alternatives."""

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        for alias in original_node.names:
            self._import(original_node, dotted_name(alias.name) or "", _bound_name(alias))
        return updated_node

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        module = dotted_name(original_node.module) if original_node.module else None
        if module is None or original_node.relative or isinstance(original_node.names, cst.ImportStar):
            return updated_node
        names = [dotted_name(alias.name) or "" for alias in original_node.names]
        packages = {self._package(f"{module}.{name}") or self._package(module) for name in names}
        if any(packages):
            bound = [_bound_name(alias) for alias in original_node.names]
            self._import(original_node, f"{module}.{names[0]}", *bound)
        if any(_PATCHES.search(name) for name in (module, *names)):
            self.report("UC808", original_node)
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self.qualified(original_node.func)
        if name in _EXTENSIONS and (name != "torch.utils.cpp_extension.load" or _has_cuda_source(original_node)):
            self.report("UC802", original_node.func)
        elif name in ("exec", "eval") or dotted_name(original_node.func) == "exec":
            self._executed(original_node)
        elif (name or "").startswith("torch.optim.") and _is_fused(original_node):
            self.report("UC624", original_node.func)
        return updated_node

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.BaseExpression:
        if isinstance(self.parent(), cst.Expr):
            return updated_node
        if _KERNEL_SOURCE.search(original_node.value):
            self.report("UC805", original_node)
        elif _QUANTISED.search(original_node.value):
            self.report("UC801", original_node, "this optimizer comes from bitsandbytes", tier=Tier.NOTE)
        return updated_node

    # -- imports ---------------------------------------------------------------------------------------------------

    def _import(self, node: cst.Import | cst.ImportFrom, module: str, *bound: str) -> None:
        if _PATCHES.search(module):
            self.report("UC808", node)
            return
        package = self._package(module)
        if package is None:
            return
        if package.name == "triton":
            self.report("UC804", node, self._uses(bound), tier=Tier.MANUAL)
            return
        tier = Tier.NOTE if package.has_cpu else None
        self.report(
            "UC801",
            node,
            "; ".join(filter(None, [package.reason.rstrip("."), self._uses(bound), _instead(package)])),
            tier=tier,
        )

    def _package(self, module: str) -> Package | None:
        """The CUDA-only package that a module belongs to, unless the repository itself holds a module of that name."""
        return None if module.partition(".")[0] in self.context.project.top_level else find_package(module)

    def _uses(self, bound: tuple[str, ...]) -> str:
        """``used at lines 7, 12``"""
        names = {name.partition(".")[0] for name in bound}
        module = self.context.module
        lines = sorted({module.lines.position(offset)[0] for name, offset in module.names.uses if name in names})
        if not lines:
            return "not used by name in this file"
        shown = ", ".join(map(str, lines[:8])) + (", ..." if len(lines) > 8 else "")
        return f"used at line{'s' if len(lines) > 1 else ''} {shown}"

    # -- code in strings -------------------------------------------------------------------------------------------

    def _executed(self, call: cst.Call) -> None:
        """``exec(TEXT)`` of a text that names CUDA."""
        if not call.args:
            return
        value = call.args[0].value
        text = string_value(value)
        if text is None and isinstance(value, cst.Name):
            values = self.context.module.names.values(value.value, self.offset(value)) or []
            texts = [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
            text = texts[0] if texts else None
        if text and "cuda" in text:
            self.report("UC809", call)


def _bound_name(alias: cst.ImportAlias) -> str:
    if alias.asname is not None:
        return dotted_name(alias.asname.name) or ""
    return dotted_name(alias.name) or ""


def _instead(package: Package) -> str:
    return f"instead: {package.generic}" if package.generic else ""


def _has_cuda_source(call: cst.Call) -> bool:
    code = cst.Module([]).code_for_node(call)
    return ".cu" in code or "cuda" in code.lower()


def _is_fused(call: cst.Call) -> bool:
    return any(arg.keyword and arg.keyword.value == "fused" and dotted_name(arg.value) == "True" for arg in call.args)
