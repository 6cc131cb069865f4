"""Questions whether something is on CUDA: ``x.is_cuda``, ``device.type == "cuda"``, ``"cuda" in device``.

They are converted only where everything that depends on the answer is portable; a branch that may hold a CUDA kernel or
a CUDA-only optimisation is left as its author wrote it.
"""

from __future__ import annotations

import ast

import libcst as cst

from codemods.findings import Tier
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.branches import choice_is_portable, is_portable
from codemods.transformers.expressions import compares_with_itself, cuda_device, names_other_devices, string_value
from codemods.transformers.roles import DEVICE_NAME

_OPTIMISATIONS = {"non_blocking", "pin_memory", "fused", "persistent_workers", "use_fused"}


class Comparisons(Codemod):
    """Compares with the selected device where the branch is portable, and reports the rest."""

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if original_node.attr.value != "is_cuda" or self._is_written_to(original_node):
            return updated_node
        if not branch_is_portable(self):
            self.report("UC203", original_node)
            return updated_node
        device_type = cst.Attribute(updated_node.with_changes(attr=cst.Name("device")), cst.Name("type"))
        replacement: cst.BaseExpression = _equal(device_type, self.call_helper("device_type"))
        if isinstance(self.parent(), cst.Comparison | cst.ComparisonTarget | cst.BinaryOperation):
            replacement = replacement.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return self.rewrite("UC203", original_node, replacement)

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        if len(original_node.comparisons) != 1:
            self._report_chain(original_node)
            return updated_node
        target, kept = original_node.comparisons[0], updated_node.comparisons[0]
        if not isinstance(target.operator, cst.Equal | cst.NotEqual | cst.In | cst.NotIn):
            return updated_node
        left_is_cuda = is_plain_cuda(original_node.left)
        if not left_is_cuda and not is_plain_cuda(target.comparator):
            if _lists_cuda(target.comparator) or any(map(cuda_device, (original_node.left, target.comparator))):
                self._report_beside_others(original_node)
            return updated_node
        if isinstance(target.operator, cst.In | cst.NotIn) and left_is_cuda and not _is_device(target.comparator):
            self.report("UC204", original_node)
            return updated_node
        if self._is_optimisation():
            self.report("UC204", original_node, "an optimisation for CUDA alone, left as it is", tier=Tier.NOTE)
            return updated_node
        if not follows(self, original_node):
            self._report_beside_others(original_node)
            return updated_node
        device_type = self.call_helper("device_type")
        if left_is_cuda:
            replacement = updated_node.with_changes(left=device_type)
        else:
            replacement = updated_node.with_changes(comparisons=[kept.with_changes(comparator=device_type)])
        if compares_with_itself(replacement):
            self.report("UC204", original_node)
            return updated_node
        in_choice = any(isinstance(ancestor, cst.IfExp) for ancestor in self.context.ancestors)
        tier = Tier.REVIEW if in_choice and not _chooses_device(self) else None
        return self.rewrite("UC204", original_node, replacement, tier=tier)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        function = original_node.func
        if (
            not isinstance(function, cst.Attribute)
            or function.attr.value != "startswith"
            or len(original_node.args) != 1
        ):
            return updated_node
        if string_value(original_node.args[0].value) not in ("cuda", "cuda:"):
            return updated_node
        if not (branch_is_portable(self) or _chooses_device(self)):
            self.report("UC204", original_node)
            return updated_node
        prefix: cst.BaseExpression = self.call_helper("device_type")
        if string_value(original_node.args[0].value) == "cuda:":
            quote = cst.ensure_type(original_node.args[0].value, cst.SimpleString).quote
            colon = cst.SimpleString(f"{quote}:{quote}")
            prefix = cst.BinaryOperation(prefix, cst.Add(), colon)
        argument = updated_node.args[0].with_changes(value=prefix)
        return self.rewrite("UC204", original_node, updated_node.with_changes(args=[argument]))

    def _report_beside_others(self, node: cst.Comparison) -> None:
        """Reports a comparison; one that stands beside other devices is device-agnostic already."""
        around = [a for a in self.context.ancestors if isinstance(a, cst.BooleanOperation)]
        if names_other_devices(around[0] if around else node):
            self.report("UC204", node, "other devices are compared with as well", tier=Tier.NOTE)
        else:
            self.report("UC204", node)

    def _report_chain(self, node: cst.Comparison) -> None:
        if any(is_plain_cuda(target.comparator) for target in node.comparisons):
            self.report("UC204", node)

    def _is_optimisation(self) -> bool:
        """``non_blocking=device.type == "cuda"``"""
        arg = next((a for a in reversed(self.context.ancestors) if isinstance(a, cst.Arg)), None)
        return arg is not None and arg.keyword is not None and arg.keyword.value in _OPTIMISATIONS

    def _is_written_to(self, node: cst.Attribute) -> bool:
        return isinstance(self.parent(), cst.AssignTarget | cst.Del)


def follows(codemod: Codemod, comparison: cst.Comparison) -> bool:
    """Whether a comparison with "cuda" may ask for the selected device: it would mean the same, and all that depends
    on the answer is portable. ``codemod`` is leaving the comparison, or something beside it in the same test.
    """
    if len(comparison.comparisons) != 1:
        return False
    target = comparison.comparisons[0]
    other = target.comparator if is_plain_cuda(comparison.left) else comparison.left
    is_membership = isinstance(target.operator, cst.In | cst.NotIn)
    is_type = isinstance(other, cst.Attribute) and other.attr.value == "type"
    is_type = is_type or "device_type" in (dotted_name(other) or "")
    if not (is_membership or is_type):
        return _chooses_device(codemod) and not _is_parameter(codemod, other)
    return branch_is_portable(codemod) or _chooses_device(codemod)


def branch_is_portable(codemod: Codemod) -> bool:
    """Whether everything behind the test that is being visited can run on another device."""
    for ancestor in reversed(codemod.context.ancestors):
        if isinstance(ancestor, cst.IfExp):
            inside_test = any(a is ancestor.test for a in codemod.context.ancestors) or codemod.parent() is ancestor
            return inside_test and all(_expression_is_portable(codemod, b) for b in (ancestor.body, ancestor.orelse))
        if isinstance(ancestor, cst.If):
            around = codemod.context.module.statements.path_to(codemod.offset(ancestor.test))
            statement = next((s for s in reversed(around) if isinstance(s, ast.If)), None)
            module = codemod.context.module
            return statement is not None and choice_is_portable(
                statement, module.statements.following(statement), module
            )
        if not isinstance(ancestor, cst.BooleanOperation | cst.UnaryOperation | cst.Comparison | cst.Attribute):
            return False
    return False


def _expression_is_portable(codemod: Codemod, node: cst.BaseExpression) -> bool:
    try:
        tree = ast.parse(cst.Module([]).code_for_node(node).strip(), mode="eval")
    except SyntaxError:
        return False
    return is_portable([ast.Expr(tree.body)], codemod.context.module, codemod.offset(node))


def _chooses_device(codemod: Codemod) -> bool:
    """``"cuda" if "cuda" in device else "cpu"``: the answer is a device again."""
    choice = next((a for a in reversed(codemod.context.ancestors) if isinstance(a, cst.IfExp)), None)
    return choice is not None and {string_value(choice.body), string_value(choice.orelse)} == {"cuda", "cpu"}


def _is_parameter(codemod: Codemod, node: cst.BaseExpression) -> bool:
    name = dotted_name(node)
    bindings = codemod.context.module.names.bindings(name, codemod.offset(node)) if name else []
    return any(binding.kind == "parameter" for binding in bindings)


def is_plain_cuda(node: cst.BaseExpression) -> bool:
    """Whether an expression is "cuda" or "cuda:0"."""
    return string_value(node) in ("cuda", "cuda:0")


def _is_device(node: cst.BaseExpression) -> bool:
    """Whether an expression is a device or its name, by what it is called: ``self.device``, ``str(x.device)``."""
    if isinstance(node, cst.Call):
        return any(_is_device(arg.value) for arg in node.args) or _is_device(node.func)
    if isinstance(node, cst.Attribute):
        return node.attr.value == "type" or bool(DEVICE_NAME.search(node.attr.value)) or _is_device(node.value)
    return isinstance(node, cst.Name) and bool(DEVICE_NAME.search(node.value))


def _lists_cuda(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.List | cst.Tuple | cst.Set) and any(is_plain_cuda(e.value) for e in node.elements)


def _equal(left: cst.BaseExpression, right: cst.BaseExpression) -> cst.Comparison:
    return cst.Comparison(left, [cst.ComparisonTarget(cst.Equal(), right)])
