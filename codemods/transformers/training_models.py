"""Models that a module trains: where they are built, and whether compiling them there is certain to be right.

A model counts if a variable of its own holds it, an optimizer of torch takes its parameters, and a backward pass is in
the same file. What is said of it is told by that file alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codemods.analysis.module import Module
from codemods.analysis.names import Binding, dotted_name

_PARALLEL = ("DistributedDataParallel", "DDP")
_WRAPPERS = {
    "FullyShardedDataParallel", "FSDP", "fully_shard", "DataParallel", "prepare", "prepare_model", "setup",
    "setup_module", "initialize", "distribute_module", "parallelize_module", "checkpoint_wrapper",
}  # fmt: skip
_COMPILERS = {"compile", "graph_mode", "compile_module", "compile_model"}
_TRACERS = {"script", "trace", "trace_module", "export", "symbolic_trace"}
_IN_PLACE = {
    "to", "cuda", "train", "eval", "float", "half", "double", "bfloat16", "requires_grad_", "apply", "cpu",
}  # fmt: skip
_HOOK = re.compile(r"register_\w*hook\Z")
_MODELS = ("torch.nn.", "torchvision.models.", "timm.create_model", "timm.models.")


@dataclass(frozen=True)
class TrainedModel:
    """A model that is trained here."""

    name: str
    assignment: ast.Assign
    """The statement whose value is to be compiled."""
    obstacle: str
    """Why that is not certain to be right; empty if it is."""


def trained_models(module: Module) -> list[TrainedModel]:
    """The models of a module that are trained and not compiled, in the order of the text."""
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    if not any(isinstance(call.func, ast.Attribute) and call.func.attr == "backward" for call in calls):
        return []
    seen: dict[int, tuple[str, list[Binding]]] = {}
    for call in calls:
        if _is_optimizer(call, module):
            for name in _trained_names(call):
                bindings = module.names.bindings(name, module.lines.start(call))
                seen.setdefault(id(bindings), (name, bindings))
    models = (_Model(name, bindings, module, calls).described() for name, bindings in seen.values() if bindings)
    return sorted(filter(None, models), key=lambda model: model.assignment.lineno)


def makes_module(value: ast.expr, module: Module, *, strict: bool = False) -> bool:
    """Whether an expression is certain to be a ``torch.nn.Module``.

    Args:
        strict: without trust in the name of an imported class
    """
    maker = _maker(value)
    if isinstance(maker, ast.Call) and isinstance(maker.func, ast.Subscript):  # models.__dict__[name]()
        dotted = dotted_name(maker.func.value)
        return dotted is not None and _qualified(dotted, maker, module) == "torchvision.models.__dict__"
    dotted = dotted_name(maker.func) if isinstance(maker, ast.Call) else None
    if dotted is None:
        return False
    qualified = _qualified(dotted, maker, module)
    if qualified is None:
        return is_module_class(dotted, module.lines.start(maker), module)
    if qualified.startswith(_MODELS):
        return True
    *_, owner, last = ["", *qualified.split(".")]
    is_class = last[:1].isupper() or (last == "from_pretrained" and owner[:1].isupper())
    return is_class and not qualified.startswith("torch.") and not strict


def is_module_class(name: str, offset: int, module: Module) -> bool:
    """Whether a class of this file derives from ``torch.nn.Module``, as far as this file tells."""
    nodes = [binding.node for binding in module.names.bindings(name, offset)]
    if len(nodes) != 1 or not isinstance(nodes[0], ast.ClassDef):
        return False
    bases = [dotted for base in nodes[0].bases if (dotted := dotted_name(base)) is not None]
    return any(
        (module.names.qualified(base, module.lines.start(nodes[0])) or "").startswith("torch.nn.")
        or (base != name and is_module_class(base, module.lines.start(nodes[0]), module))
        for base in bases
    )


class _Model:
    """One variable, and what the module does with it."""

    def __init__(self, name: str, bindings: Sequence[Binding], module: Module, calls: Sequence[ast.Call]) -> None:
        self.name = name
        self.bindings = bindings
        self.module = module
        self.calls = calls
        self.uses = [call for call in calls if self._takes_model(call)]

    def described(self) -> TrainedModel | None:
        """The model with its place and its obstacle; None where there is nothing to compile, or it is done."""
        assignments = [self._assignment(binding) for binding in self.bindings]
        if any(assignment is None for assignment in assignments):
            return None
        known = [assignment for assignment in assignments if assignment is not None]
        builds = [a for a in known if not self._mentions(a.value)]
        if not builds or self._is_compiled() or not self._is_moved(known) or not self._is_called():
            return None
        wrapped = self._parallel()
        place = wrapped[0] if len(wrapped) == 1 and isinstance(wrapped[0], ast.Assign) else builds[0]
        return TrainedModel(self.name, place, self._obstacle(builds, wrapped))

    def _assignment(self, binding: Binding) -> ast.Assign | None:
        """The statement ``name = value`` of a binding."""
        statement = self.module.statements.path_to(binding.offset)[-1]
        is_plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1
        if not is_plain or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return None
        return statement if binding.kind == "assign" else None

    # -- what keeps it from being compiled ---------------------------------------------------------------------------

    def _obstacle(self, builds: Sequence[ast.Assign], wrapped: Sequence[ast.stmt]) -> str:
        if len(builds) > 1:
            return f"it is built in several places: lines {', '.join(str(build.lineno) for build in builds)}"
        if not makes_module(builds[0].value, self.module):
            return "what builds it may return anything"
        behind = self.module.statements.following(builds[0])
        if len(wrapped) > 1 or any(not isinstance(s, ast.Assign) or s not in behind for s in wrapped):
            return f"line {wrapped[0].lineno} wraps it for distributed training, under a condition or more than once"
        return self._use_that_forbids() or self._pass_that_forbids()

    def _use_that_forbids(self) -> str:
        for call in self.uses:
            last = _last(call)
            if last in _WRAPPERS:
                return f"line {call.lineno} hands it to {last}"
            if last in _TRACERS:
                return f"line {call.lineno} traces or scripts it"
        for call in self.calls:
            if _HOOK.match(_last(call)):
                return f"line {call.lineno} registers a hook, which a compiled model may not see"
            if _last(call) == "data_parallel":
                return f"line {call.lineno} runs modules on several devices"
        return ""

    def _pass_that_forbids(self) -> str:
        """A backward pass that compiled code has no gradients for: a second one, or one through the gradients."""
        for call in self.calls:
            for keyword in call.keywords:
                if (
                    keyword.arg in ("retain_graph", "create_graph")
                    and getattr(keyword.value, "value", None) is not False
                ):
                    return f"line {call.lineno} keeps the graph of the backward pass ({keyword.arg})"
            if self._name_of(call) == "torch.autograd.grad":
                return f"line {call.lineno} asks for gradients by hand"
        return ""

    # -- what is done with it ----------------------------------------------------------------------------------------

    def _takes_model(self, call: ast.Call) -> bool:
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        return any(self._is_model(_maker(value), call) for value in values)

    def _is_model(self, node: ast.expr, at: ast.Call) -> bool:
        if not isinstance(node, ast.Name) or node.id != self.name:
            return False
        return self.module.names.bindings(self.name, self.module.lines.start(at)) is self.bindings

    def _mentions(self, value: ast.expr) -> bool:
        return any(isinstance(node, ast.Name) and node.id == self.name for node in ast.walk(value))

    def _is_compiled(self) -> bool:
        """Whether the model, or what wraps it for distributed training, is compiled already."""
        wraps = [statement for statement in self._parallel() if isinstance(statement, ast.Assign)]
        wrapped = {target.id for wrap in wraps for target in wrap.targets if isinstance(target, ast.Name)}
        values = [*(b.value for b in self.bindings if b.value is not None), *(wrap.value for wrap in wraps)]
        makers = (node for value in values for node in ast.walk(value) if isinstance(node, ast.Call))
        own = (c for c in self.calls if isinstance(c.func, ast.Attribute) and self._is_model(c.func.value, c))
        others = (c for c in self.calls if any(isinstance(arg, ast.Name) and arg.id in wrapped for arg in c.args))
        return any(_last(call) in _COMPILERS for call in (*self.uses, *own, *makers, *others))

    def _is_moved(self, assignments: Sequence[ast.Assign]) -> bool:
        own = (c for c in self.calls if isinstance(c.func, ast.Attribute) and self._is_model(c.func.value, c))
        inner = (n for a in assignments for n in ast.walk(a.value) if isinstance(n, ast.Call))
        return any(isinstance(c.func, ast.Attribute) and c.func.attr in ("to", "cuda") for c in (*own, *inner))

    def _is_called(self) -> bool:
        """Whether the model itself is called here, or handed to a function that may call it."""
        own = any(self._is_model(call.func, call) for call in self.calls)
        handed = (c for c in self.uses if not (self._name_of(c) or "").startswith("torch.") and _last(c) != "print")
        return own or any(True for _ in handed) or bool(self._parallel())

    def _parallel(self) -> list[ast.stmt]:
        """The statements that wrap the model for distributed training."""
        wraps = [call for call in self.uses if (self._name_of(call) or _last(call)).split(".")[-1] in _PARALLEL]
        around = (self.module.statements.path_to(self.module.lines.start(call)) for call in wraps)
        return [path[-1] for path in around if path]

    def _name_of(self, call: ast.Call) -> str | None:
        dotted = dotted_name(call.func)
        return _qualified(dotted, call, self.module) if dotted else None


def _is_optimizer(call: ast.Call, module: Module) -> bool:
    dotted = dotted_name(call.func)
    name = (_qualified(dotted, call, module) or "") if dotted else ""
    is_class = name.rpartition(".")[2][:1].isupper()
    return name.startswith("torch.optim.") and "lr_scheduler" not in name and is_class


def _trained_names(optimizer: ast.Call) -> Iterator[str]:
    """The variables whose ``parameters()`` an optimizer takes."""
    for node in ast.walk(optimizer):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if node.func.attr in ("parameters", "named_parameters") and isinstance(owner, ast.Name):
                yield owner.id


def _maker(value: ast.expr) -> ast.expr:
    """What an expression is made of, without the methods that return what they are called on: ``Net().cuda()``."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _IN_PLACE:
        value = value.func.value
    return value


def _last(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def _qualified(dotted: str, node: ast.expr, module: Module) -> str | None:
    return module.names.qualified(dotted, module.lines.start(node))
