"""Availability guards: ``torch.cuda.is_available()`` and the device that it chooses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import libcst as cst

from codemods.cuda_api import load_packages
from codemods.findings import Tier
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.comparisons import follows
from codemods.transformers.expressions import CudaDevice, cuda_device, string_value
from codemods.transformers.regions import call_name, decides_tests, is_skip, is_test_condition
from codemods.transformers.roles import Role, device_role

_AVAILABLE = "torch.cuda.is_available"
_OTHER_ACCELERATORS = re.compile(r"\b(mps|xpu|npu|mlu|musa|hpu|xla)\b")
_DTYPE_STRINGS = {
    "float16",
    "bfloat16",
    "float32",
    "fp16",
    "bf16",
    "fp32",
    "half",
    "16",
    "32",
    "16-mixed",
    "bf16-mixed",
}


class Guards(Codemod):
    """Asks for the selected device instead of CUDA, together with the device that the answer chooses."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self.qualified(original_node.func)
        if name == "torch.device":
            return self._device_of_choice(original_node, updated_node)
        if name == _AVAILABLE or (name in ("torch.accelerator.is_available",) and self._guards_cuda()):
            return self._availability(original_node, updated_node)
        return updated_node

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        device = self._classic_choice(original_node)
        if device is None:
            return updated_node
        role = device_role(self, original_node)
        if role is Role.TORCH_DEVICE:
            return updated_node  # the call around it is replaced as a whole
        chosen = self.call_helper("available_device", device.index)
        if role is Role.TYPE:
            return self.rewrite("UC202", original_node, cst.Attribute(chosen, cst.Name("type")))
        if role is Role.OBJECT or _is_torch_device(original_node.body) or _is_torch_device(original_node.orelse):
            return self.rewrite("UC202", original_node, chosen)
        return self.rewrite("UC202", original_node, cst.Call(cst.Name("str"), [cst.Arg(chosen)]))

    # -- "cuda" if available else "cpu" -------------------------------------------------------------------------

    def _device_of_choice(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """``torch.device("cuda" if torch.cuda.is_available() else "cpu")``"""
        if len(original.args) != 1 or not isinstance(original.args[0].value, cst.IfExp):
            return updated
        device = self._classic_choice(original.args[0].value)
        if device is None:
            return updated
        return self.rewrite("UC202", original, self.call_helper("available_device", device.index))

    def _classic_choice(self, original: cst.IfExp) -> CudaDevice | None:
        """The CUDA device that is chosen if CUDA is available and nothing else is asked; the CPU is the alternative."""
        test: cst.BaseExpression = original.test
        cuda, cpu = original.body, original.orelse
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test, cuda, cpu = test.expression, cpu, cuda
        if not isinstance(test, cst.Call) or not self._asks_availability(test) or not self._names_cpu(cpu):
            return None
        return self._named_cuda(cuda)

    def _asks_availability(self, call: cst.Call) -> bool:
        return self.qualified(call.func) in (_AVAILABLE, "torch.accelerator.is_available") and not call.args

    def _names_cpu(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.Call) and self.qualified(node.func) == "torch.device" and len(node.args) == 1:
            node = node.args[0].value
        return string_value(node) == "cpu"

    def _named_cuda(self, node: cst.BaseExpression) -> CudaDevice | None:
        if isinstance(node, cst.Call) and self.qualified(node.func) == "torch.device":
            literal = cuda_device(node.args[0].value) if node.args else None
            if literal is None or len(node.args) > 2:
                return None
            device = CudaDevice(node.args[1].value) if len(node.args) == 2 else literal
            return device if _costs_nothing(device.index) else None
        literal = cuda_device(node)
        return literal if literal is not None and _costs_nothing(literal.index) else None

    # -- torch.cuda.is_available() -------------------------------------------------------------------------------

    def _availability(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        if original.args:
            return updated
        if self._decides_a_test(original):
            self.report("UC807", original, self.context.test_obstacle(self.offset(original)))
            return updated
        gate = self._cuda_only_gate(original)
        if gate:
            self.report("UC201", original, gate, tier=Tier.MANUAL)
            return updated
        if self._is_requirement(original):
            detail = "the text of the message still names CUDA" if self._message_names_cuda() else ""
            return self.rewrite("UC205", original, self.call_helper("is_usable"), detail)
        if self._knows_other_accelerators(original):
            return self.rewrite("UC201", original, self.call_helper("is_usable"))
        if self._chooses_dtype():
            return self.rewrite(
                "UC201", original, self.call_helper("is_available"),
                "it chooses a number format; see that the device supports it", tier=Tier.REVIEW,
            )  # fmt: skip
        return self.rewrite("UC201", original, self.call_helper("is_available"))

    def _guards_cuda(self) -> bool:
        """A half-converted guard: a generic question in front of code that still names CUDA."""
        choice = next((a for a in reversed(self.context.ancestors) if isinstance(a, cst.IfExp)), None)
        if choice is not None:
            return "cuda" in cst.Module([]).code_for_node(choice)
        statement = self._if_statement()
        return statement is not None and "torch.cuda." in _source(statement, self.context.module.text)

    def _decides_a_test(self, original: cst.Call) -> bool:
        """``if not torch.cuda.is_available(): pytest.skip()``, and flags that stand in the conditions of tests."""
        if self.context.tests is not None and self.context.tests.decided_at(self.offset(original)) is not None:
            return True
        if any(isinstance(a, cst.Call) and is_test_condition(dotted_name(a.func)) for a in self.context.ancestors):
            return True
        assignment = next((a for a in self.context.ancestors if isinstance(a, cst.Assign)), None)
        if assignment is not None:
            names = (dotted_name(target.target) for target in assignment.targets)
            return any(name and decides_tests(self.context.module, name) for name in names)
        statement = self._if_statement()
        return statement is not None and any(is_skip(s) for s in statement.body)

    def _cuda_only_gate(self, original: cst.Call) -> str:
        """Why a guard stays: it gates something that is CUDA's alone, or stands beside a question that stays."""
        arg = next((a for a in reversed(self.context.ancestors) if isinstance(a, cst.Arg)), None)
        keyword = arg.keyword.value if arg is not None and arg.keyword is not None else ""
        if keyword in ("fused", "use_fused"):
            return "it gates a fused CUDA kernel"
        if keyword in ("gpus", "num_gpus", "accelerator", "devices"):
            return "it is an argument of a framework with a device layer of its own"
        package = self._required_package()
        if package:
            return f"it guards {package}, which needs CUDA"
        top = self.parent()
        for ancestor in reversed(self.context.ancestors):
            if not isinstance(ancestor, cst.BooleanOperation | cst.UnaryOperation):
                break
            top = ancestor
        comparisons = (
            [part for part in _operands(top) if _compares_cuda(part)] if isinstance(top, cst.BooleanOperation) else []
        )
        if any(isinstance(part, cst.Comparison) and not follows(self, part) for part in comparisons):
            return "it stands beside a comparison with 'cuda'"
        return ""

    def _required_package(self) -> str:
        """The CUDA-only package that an assertion speaks of, by its name or title."""
        statement = next((a for a in self.context.ancestors if isinstance(a, cst.Assert)), None)
        message = string_value(statement.msg) if statement is not None else None
        words = set(re.findall(r"\w+", (message or "").lower()))
        packages = load_packages().values()
        return next((p.title for p in packages if {p.name.lower(), p.title.lower()} & words), "")

    def _is_requirement(self, original: cst.Call) -> bool:
        """Whether the program stops without CUDA: an assertion, or an early exit."""
        if any(isinstance(ancestor, cst.Assert) for ancestor in self.context.ancestors):
            return True
        statement = self._if_statement()
        if statement is None or not statement.body:
            return False
        negated = any(
            isinstance(a, cst.UnaryOperation) and isinstance(a.operator, cst.Not) for a in self.context.ancestors
        )
        return negated and _stops(statement.body[-1])

    def _message_names_cuda(self) -> bool:
        assertion = next((a for a in self.context.ancestors if isinstance(a, cst.Assert)), None)
        if assertion is not None:
            return "CUDA" in (string_value(assertion.msg) or "")
        statement = self._if_statement()
        constants = (
            n for s in (statement.body if statement else ()) for n in ast.walk(s) if isinstance(n, ast.Constant)
        )
        return any(isinstance(constant.value, str) and "CUDA" in constant.value for constant in constants)

    def _knows_other_accelerators(self, original: cst.Call) -> bool:
        """A chain that asks for other accelerators next: the author's order counts as long as nothing is selected."""
        for ancestor in self.context.ancestors:
            if isinstance(ancestor, cst.IfExp):
                return bool(_OTHER_ACCELERATORS.search(cst.Module([]).code_for_node(ancestor.orelse)))
        statement = self._if_statement()
        if statement is None:
            return False
        rest = statement.orelse
        if not rest and isinstance(statement.body[-1], ast.Return):
            rest = self.context.module.statements.following(statement)
        return any(
            isinstance(other, ast.If) and _OTHER_ACCELERATORS.search(_source(other.test, self.context.module.text))
            for other in rest
        )

    def _chooses_dtype(self) -> bool:
        choice = next((a for a in reversed(self.context.ancestors) if isinstance(a, cst.IfExp)), None)
        return choice is not None and any(self._is_dtype(branch) for branch in (choice.body, choice.orelse))

    def _is_dtype(self, node: cst.BaseExpression) -> bool:
        return string_value(node) in _DTYPE_STRINGS or (self.qualified(node) or "").startswith(
            ("torch.float", "torch.bfloat", "torch.half")
        )

    # -- the statement around ------------------------------------------------------------------------------------

    def _if_statement(self) -> ast.If | None:
        """The ``if`` statement whose test is being visited."""
        header = next((a for a in reversed(self.context.ancestors) if isinstance(a, cst.BaseStatement)), None)
        if not isinstance(header, cst.If):
            return None
        if not any(ancestor is header.test for ancestor in self.context.ancestors) and not self._is_whole_test(header):
            return None
        around = self.context.module.statements.path_to(self.offset(header.test))
        return next((s for s in reversed(around) if isinstance(s, ast.If)), None)

    def _is_whole_test(self, header: cst.If) -> bool:
        return self.parent() is header


def _costs_nothing(index: cst.BaseExpression | None) -> bool:
    """Whether an index may be computed where the CPU is chosen too: a call might ask the device, or fail."""
    return index is None or isinstance(index, cst.Integer | cst.Name | cst.Attribute)


def _is_torch_device(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and (dotted_name(node.func) or "").split(".")[-1] == "device"


def _operands(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.BooleanOperation):
        yield from _operands(node.left)
        yield from _operands(node.right)
    elif isinstance(node, cst.UnaryOperation):
        yield from _operands(node.expression)
    else:
        yield node


def _compares_cuda(node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Comparison):
        return False
    sides = [node.left, *(target.comparator for target in node.comparisons)]
    return any(cuda_device(side) is not None for side in sides)


def _source(node: ast.AST, text: str) -> str:
    return ast.get_source_segment(text, node) or ""


def _stops(statement: ast.stmt) -> bool:
    """Whether a block that ends so ends the program."""
    return isinstance(statement, ast.Raise) or call_name(statement) in ("sys.exit", "exit", "quit", "os._exit")
