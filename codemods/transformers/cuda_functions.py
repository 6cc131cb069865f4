"""The surface of ``torch.cuda``: what the table in ``rules/torch_cuda.toml`` says of each name, and imports of them."""

from __future__ import annotations

import ast

import libcst as cst

from codemods.cuda_api import CudaName, load_cuda_api
from codemods.findings import Tier
from codemods.transformers import graph_facts
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.roles import Role, device_role

_BY_PLACE = {"torch.cuda.is_available", "torch.random.fork_rng"}
"""Names that other codemods replace where they are called."""
_QUERIES = {
    "torch.cuda.get_device_capability",
    "torch.cuda.get_device_name",
    "torch.cuda.get_device_properties",
    "torch.cuda.mem_get_info",
}
_NAMESPACES = ("torch.cuda", "torch.backends.cuda", "torch.backends.cudnn", "torch.version.cuda", "torch._C._cuda")


class CudaFunctions(Codemod):
    """Replaces names of ``torch.cuda`` by the helper's, or says why not."""

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        name = self.qualified(original_node)
        if name is None and self._is_uncertain(original_node):
            self.report("UC810", original_node)
        if self._is_query_of_helper(original_node) and self._is_at_import(original_node):
            self.report("UC509", original_node)
        if name is None or not _is_known(name) or self._goes_on(original_node, name):
            return updated_node
        return self._replace(original_node, updated_node, name)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if not self._is_use(original_node):
            return updated_node
        name = self._imported(original_node)
        if name is None or not _is_known(name):
            return updated_node
        return self._replace(original_node, updated_node, name)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """``torch.cuda.current_device()`` in a place that takes a device: an integer would mean CUDA there."""
        name = self.qualified(original_node.func)
        if name == "torch.cuda.current_device" and self._takes_device(original_node):
            index = self.call_helper("current_device")
            return self.rewrite("UC501", original_node, self.device(index))
        if name in ("getattr", "hasattr", "setattr") or dotted_name(original_node.func) in ("getattr", "hasattr"):
            self._report_getattr(original_node)
        return updated_node

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        module = dotted_name(original_node.module) if original_node.module else None
        if original_node.relative or module is None or not (module + ".").startswith("torch.cuda."):
            return updated_node
        if isinstance(original_node.names, cst.ImportStar):
            self.report("UC810", original_node)
            return updated_node
        names = [dotted_name(alias.name) or "" for alias in original_node.names]
        if not moves_as_a_whole(module, names):
            self._note_names_that_stay(original_node, module, names)
            return updated_node
        moved = [self._moved_alias(module, alias) for alias in original_node.names]
        replacement = updated_node.with_changes(
            module=_module(self.context.helper_module),
            relative=[cst.Dot()] * _dots(self.context.helper_module),
            names=moved,
        )
        rule = "UC401" if module.startswith("torch.cuda.amp") else "UC502"
        return self.rewrite(rule, original_node, replacement, uses_helper=False)

    def _takes_device(self, node: cst.Call) -> bool:
        """Whether a call stands where a device is taken; the functions of torch.cuda take an index as well."""
        call = self.parent(2)
        if isinstance(call, cst.Call) and (self.qualified(call.func) or "").startswith("torch.cuda."):
            return False
        return device_role(self, node) in (Role.OBJECT, Role.TORCH_DEVICE)

    def _note_names_that_stay(self, node: cst.ImportFrom, module: str, names: list[str]) -> None:
        """Names without a counterpart are reported where they are used; the import itself does no harm."""
        known = load_cuda_api()
        modules = {full.rpartition(".")[0] for full in known}
        stay = [
            name
            for name in names
            if (full := f"{module}.{name}") not in modules and (full not in known or known[full].action != "helper")
        ]
        if stay:
            self.report("UC502", node, f"{', '.join(stay)}: reported where it is used", tier=Tier.NOTE)

    # -- one name --------------------------------------------------------------------------------------------------

    def _replace(
        self, original: cst.Attribute | cst.Name, updated: cst.BaseExpression, name: str
    ) -> cst.BaseExpression:
        parent = self.parent()
        if name in _BY_PLACE and isinstance(parent, cst.Call) and parent.func is original:
            return updated
        if isinstance(parent, cst.AssignTarget) and name.startswith("torch.cuda"):
            self.report("UC504", original, f"{name} is replaced for the whole program")
            return updated
        known = load_cuda_api().get(name)
        if known is None:
            self._report_unknown(original, name)
            return updated
        if known.action == "helper":
            return self._use_helper(original, known)
        if known.action == "keep":
            self.report("UC901" if "backends" in name else "UC902", original, known.reason, tier=Tier.NOTE)
        elif known.action == "report":
            self._report_without_equivalent(original, known)
        return updated

    def _use_helper(self, original: cst.Attribute | cst.Name, known: CudaName) -> cst.BaseExpression:
        tier = Tier.REVIEW if known.tier == "review" else None
        if known.name in _QUERIES and self._is_at_import(original):
            self.report("UC509", original)
        reason = known.reason.rstrip(".")
        return self.rewrite(rule_for(known.name), original, self.helper(known.helper), reason, tier=tier)

    def _report_without_equivalent(self, original: cst.CSTNode, known: CudaName) -> None:
        parts = [known.reason.rstrip(".")]
        if known.equivalent:
            parts.append(f"nearest equivalent: {known.equivalent}")
        if known.renamed:
            parts.append("other names: " + ", ".join(f"torch.{d}.{n}" for d, n in known.renamed.items()))
        if "graph" in self.context.families and "graph" in known.name.lower():
            parts.append(graph_facts.graphs())
        self.report("UC503", original, "; ".join(part for part in parts if part))

    def _report_unknown(self, original: cst.CSTNode, name: str) -> None:
        if name == "torch.cuda":
            self._report_module(original)
        elif name.startswith("torch.cuda.") and not _is_converted(name.rpartition(".")[0]):
            self.report("UC503", original, f"{name} is not a public name of torch.cuda")

    def _report_module(self, original: cst.CSTNode) -> None:
        call = self.parent(2)
        fallback = isinstance(call, cst.Call) and dotted_name(call.func) == "getattr" and len(call.args) == 3
        if isinstance(self.parent(), cst.Arg) and fallback:
            self.report("UC504", original, "the fall-back of a look-up that is device-agnostic already", tier=Tier.NOTE)
        else:
            self.report("UC504", original)

    def _report_getattr(self, call: cst.Call) -> None:
        if len(call.args) >= 2 and self.qualified(call.args[0].value) == "torch":
            value = call.args[1].value
            if isinstance(value, cst.SimpleString) and value.evaluated_value == "cuda":
                self.report("UC504", call, "the module is looked up by name")

    # -- where a name stands ---------------------------------------------------------------------------------------

    def _goes_on(self, node: cst.Attribute, name: str) -> bool:
        """Whether the name is only the beginning of a longer one that is known."""
        parent = self.parent()
        if not isinstance(parent, cst.Attribute) or parent.value is not node:
            return False
        known = load_cuda_api().get(name)
        if known is None or f"{name}.{parent.attr.value}" in load_cuda_api():
            return True
        is_module = name.startswith("torch.cuda.") and name.rpartition(".")[2].islower()
        return is_module and known.action in ("rule", "report")

    def _is_use(self, node: cst.Name) -> bool:
        """Whether a name is read here, rather than bound, imported, or the attribute or keyword of something else."""
        parent = self.parent()
        if isinstance(parent, cst.Attribute):
            return parent.value is node
        if isinstance(parent, cst.Arg):
            return parent.value is node
        if isinstance(parent, cst.Param):
            return parent.default is node
        return not isinstance(
            parent,
            cst.AssignTarget | cst.ImportAlias | cst.AsName | cst.FunctionDef | cst.ClassDef | cst.NameItem | cst.Del,
        )

    def _imported(self, node: cst.Name) -> str | None:
        """The full name that a ``from torch.cuda import ...`` gave this name, unless the import itself is moved."""
        bindings = self.context.module.names.bindings(node.value, self.offset(node))
        if len(bindings) != 1 or bindings[0].kind != "import":
            return None
        alias, target = bindings[0].node, bindings[0].target
        if not isinstance(alias, ast.alias) or target is None or target == alias.name or "." in alias.name:
            return None
        module = target[: -len(alias.name) - 1]
        statement = self.context.module.statements.path_to(bindings[0].offset)[-1]
        if not isinstance(statement, ast.ImportFrom) or moves_as_a_whole(module, [a.name for a in statement.names]):
            return None
        return target

    def _is_uncertain(self, node: cst.Attribute) -> bool:
        """``cuda.empty_cache`` that a star import may have bound, or one of several imports of the name."""
        names = self.context.module.names
        dotted = dotted_name(node) or ""
        if isinstance(self.parent(), cst.Attribute) or "cuda." not in dotted:
            return False
        bindings = names.bindings(dotted.partition(".")[0], self.offset(node))
        if not bindings:
            return bool(names.star_imports) and dotted.startswith(("cuda.", "torch.cuda."))
        targets = {binding.target for binding in bindings if binding.kind == "import"}
        return len(targets) > 1 and any(target in ("torch", "torch.cuda") for target in targets)

    def _is_query_of_helper(self, node: cst.Attribute) -> bool:
        """A question to the device in code that is converted already."""
        queries = {name.rpartition(".")[2] for name in _QUERIES}
        return (
            isinstance(node.value, cst.Name) and node.value.value == self.context.helper and node.attr.value in queries
        )

    def _is_at_import(self, node: cst.CSTNode) -> bool:
        around = self.context.module.statements.path_to(self.offset(node))
        return not any(isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.If) for s in around)

    def _moved_alias(self, module: str, alias: cst.ImportAlias) -> cst.ImportAlias:
        name = dotted_name(alias.name) or ""
        helper = load_cuda_api()[f"{module}.{name}"].helper
        if helper == name:
            return alias
        keep = alias.asname or cst.AsName(
            cst.Name(name),
            whitespace_before_as=cst.SimpleWhitespace(" "),
            whitespace_after_as=cst.SimpleWhitespace(" "),
        )
        return alias.with_changes(name=cst.Name(helper), asname=keep)


def _is_known(name: str) -> bool:
    """Whether a name is one of ``torch.cuda``, or another one that the table speaks of and no rule of its own."""
    known = load_cuda_api().get(name)
    return name.startswith(_NAMESPACES) or (known is not None and known.action == "report")


def _is_converted(name: str) -> bool:
    """Whether the helper has a name, so that what follows it is asked of the helper's."""
    known = load_cuda_api().get(name)
    return known is not None and known.action == "helper"


def rule_for(name: str) -> str:
    """The rule under which a name of ``torch.cuda`` is replaced."""
    if name.startswith("torch.cuda.amp"):
        return "UC401"
    return "UC601" if name.endswith(("Tensor", "Storage")) else "UC501"


def moves_as_a_whole(module: str, names: list[str]) -> bool:
    """Whether the helper offers every name of an import, so that the import can be pointed at the helper as it is."""
    known = load_cuda_api()
    entries = [known.get(f"{module}.{name}") for name in names]
    return all(entry is not None and entry.action == "helper" and "." not in entry.helper for entry in entries)


def _dots(module: str) -> int:
    return len(module) - len(module.lstrip("."))


def _module(dotted: str) -> cst.Attribute | cst.Name | None:
    name = dotted.lstrip(".")
    if not name:
        return None
    first, *rest = name.split(".")
    node: cst.Attribute | cst.Name = cst.Name(first)
    for part in rest:
        node = cst.Attribute(node, cst.Name(part))
    return node
