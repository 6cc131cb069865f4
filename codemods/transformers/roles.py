"""What a device string is there for, told by where it stands."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from enum import Enum, auto

import libcst as cst

from codemods.analysis.names import dotted_name as ast_dotted_name
from codemods.frameworks import find_argument
from codemods.transformers.base import Codemod, dotted_name
from codemods.transformers.expressions import string_value

DEVICE_NAME = re.compile(r"device|(?:^|_)dev(?:$|_)|map_location", re.IGNORECASE)
TYPE_NAME = re.compile(r"device[-_]?type", re.IGNORECASE)
BACKEND_NAME = re.compile(r"backend", re.IGNORECASE)

_TYPE_CALLS = {
    "torch.autocast",
    "torch.amp.autocast",
    "torch.amp.autocast_mode.autocast",
    "torch.amp.is_autocast_available",
    "torch.amp.custom_fwd",
    "torch.amp.custom_bwd",
    "torch.distributed.device_mesh.init_device_mesh",
    "torch.distributed.init_device_mesh",
    "torch.distributed.DeviceMesh",
    "torch.distributed.device_mesh.DeviceMesh",
    "torch.is_autocast_enabled",
    "torch.get_autocast_dtype",
    "torch.set_autocast_enabled",
    "torch.set_autocast_dtype",
}
_FIRST_IS_DEVICE = {"torch.Generator", "torch.set_default_device", "torch.utils._device.DeviceContext"}
_LOADERS = {"torch.load", "torch.jit.load"}
_TENSOR_FACTORY_METHODS = {"new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "to"}
_PROSE_CALLS = {"print", "log", "debug", "info", "warning", "warn", "error", "critical", "exception", "write", "echo"}
_STRING_METHODS = {
    "startswith", "endswith", "replace", "split", "rsplit", "strip", "lstrip", "removeprefix", "count", "find", "index",
}  # fmt: skip
_OPTION_CALLS = {"add_argument", "option", "add_option", "DEFINE_string", "DEFINE_enum"}


class Role(Enum):
    """What a string names, and so what may take its place."""

    OBJECT = auto()
    """A device; a ``torch.device`` is as good."""
    STRING = auto()
    """A device, in a place that may do string operations."""
    TYPE = auto()
    """A device type without index."""
    TORCH_DEVICE = auto()
    """The argument of ``torch.device(...)``."""
    OPTION = auto()
    """The default of a command-line option for a device."""
    CHOICES = auto()
    """One of the values that a command-line option accepts."""
    COMPARED = auto()
    """One side of a comparison."""
    LABEL = auto()
    """Text, a key, a message: no device."""
    UNKNOWN = auto()
    """A value whose use cannot be seen."""


def device_role(codemod: Codemod, node: cst.CSTNode) -> Role:
    """The role of the device string ``node``, which is being left."""
    return _Climb(codemod, node, DEVICE_NAME, argument_role).role()


def backend_role(codemod: Codemod, node: cst.CSTNode) -> Role:
    """The role of a collective backend's name: STRING where it is one, else OPTION, COMPARED, LABEL or UNKNOWN."""
    return _Climb(codemod, node, BACKEND_NAME, _backend_argument).role()


ArgumentRole = Callable[[Codemod, cst.Call, cst.Arg], Role]


class _Climb:
    """Goes up from a node until something tells its role."""

    def __init__(self, codemod: Codemod, node: cst.CSTNode, names: re.Pattern[str], argument: ArgumentRole) -> None:
        self.codemod = codemod
        self.node = node
        self.names = names
        self.argument = argument

    def role(self) -> Role:
        child = self.node
        arg: cst.Arg | None = None
        for ancestor in reversed(self.codemod.context.ancestors):
            if isinstance(ancestor, cst.Arg):
                arg = ancestor
            elif isinstance(ancestor, cst.IfExp) and child is ancestor.test:
                return Role.UNKNOWN
            elif not isinstance(ancestor, cst.IfExp | cst.BooleanOperation):
                return self._role_in(ancestor, child, arg)
            child = ancestor
        return Role.UNKNOWN

    def _role_in(self, ancestor: cst.CSTNode, child: cst.CSTNode, arg: cst.Arg | None) -> Role:
        if isinstance(ancestor, cst.Call):
            if arg is None:
                return Role.UNKNOWN
            return Role.LABEL if self._is_helper(ancestor) else self.argument(self.codemod, ancestor, arg)
        if isinstance(ancestor, cst.Comparison | cst.ComparisonTarget):
            return Role.COMPARED
        if isinstance(ancestor, cst.Assign | cst.AnnAssign | cst.NamedExpr):
            return self._assigned(ancestor)
        if isinstance(ancestor, cst.Param):
            return self._named(ancestor.name.value)
        if isinstance(ancestor, cst.DictElement):
            return self._dict_value(ancestor) if child is ancestor.value else Role.LABEL
        if isinstance(ancestor, cst.Return):
            return self._named(self._function_name())
        if isinstance(ancestor, cst.FormattedStringExpression | cst.Index | cst.Expr):
            return Role.UNKNOWN if self._is_in_literal_type() else Role.LABEL
        if isinstance(ancestor, cst.Element):
            return self._listed()
        return Role.UNKNOWN

    def _is_in_literal_type(self) -> bool:
        """``Literal["cuda", "cpu"]``: a type that admits no other device."""
        subscripts = (a for a in self.codemod.context.ancestors if isinstance(a, cst.Subscript))
        return any(_last_name(subscript.value) == "Literal" for subscript in subscripts)

    def _is_helper(self, call: cst.Call) -> bool:
        """Whether a call is one of the helper's, as converted code has it."""
        return (dotted_name(call.func) or "").startswith(self.codemod.context.helper + ".")

    def _named(self, name: str | None) -> Role:
        if not name or not self.names.search(name):
            return Role.UNKNOWN
        return Role.TYPE if TYPE_NAME.search(name) else Role.STRING

    def _assigned(self, node: cst.Assign | cst.AnnAssign | cst.NamedExpr) -> Role:
        targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
        named = [role for target in targets if (role := self._named(_last_name(target))) is not Role.UNKNOWN]
        if named:
            return named[0]
        names = [target.value for target in targets if isinstance(target, cst.Name)]
        offset = self.codemod.offset(node)
        return next((role for name in names if (role := self._by_use(name, offset)) is not Role.UNKNOWN), Role.UNKNOWN)

    def _by_use(self, name: str, offset: int) -> Role:
        """A variable without a telling name: what the module uses it for."""
        uses = list(_argument_uses(self.codemod.context.module.tree, name))
        if self.names is BACKEND_NAME:
            return Role.STRING if uses and all(is_backend_use(call, key) for call, key in uses) else Role.UNKNOWN
        return Role.STRING if any(_is_device_use(call, key) for call, key in uses) else Role.UNKNOWN

    def _dict_value(self, element: cst.DictElement) -> Role:
        return self._named(string_value(element.key))

    def _function_name(self) -> str | None:
        for ancestor in reversed(self.codemod.context.ancestors):
            if isinstance(ancestor, cst.FunctionDef):
                return ancestor.name.value
        offset = self.codemod.offset(self.node)
        around = self.codemod.context.module.statements.path_to(offset)
        return next((s.name for s in reversed(around) if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)), None)

    def _listed(self) -> Role:
        """An element of a list, tuple or set: the values of an option, or unknown."""
        for ancestor in reversed(self.codemod.context.ancestors):
            if isinstance(ancestor, cst.ComparisonTarget):
                return Role.COMPARED
            if isinstance(ancestor, cst.Call):
                known = self._is_helper(ancestor) or is_choices(ancestor, self.names, self.codemod)
                return Role.CHOICES if known else Role.UNKNOWN
        return Role.UNKNOWN


def is_choices(call: cst.Call, names: re.Pattern[str], codemod: Codemod) -> bool:
    """Whether a list inside ``call`` holds the values of a command-line option that is called accordingly."""
    name = _last_name(call.func)
    if name == "add_argument":
        return names_option(call, names) and any(arg.keyword and arg.keyword.value == "choices" for arg in call.args)
    return name == "Choice" and codemod.qualified(call.func) in ("click.Choice", "click.types.Choice")


def argument_role(codemod: Codemod, call: cst.Call, arg: cst.Arg) -> Role:
    """The role of a device that a call is given as this argument."""
    name = codemod.qualified(call.func)
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else None
    keyword = arg.keyword.value if arg.keyword else None
    position = None if keyword else call.args.index(arg)
    if name == "torch.device" and (position == 0 or keyword in ("device", "type")):
        return Role.TORCH_DEVICE if len(call.args) == 1 else Role.TYPE
    if keyword == "device_type" or (name in _TYPE_CALLS and position == 0):
        return Role.TYPE
    if keyword == "map_location" or (name in _LOADERS and position == 1):
        return Role.OBJECT
    if method in ("to", "cuda") and (position == 0 or keyword == "device"):
        return Role.OBJECT
    if _is_cuda_call(name) or (name in _FIRST_IS_DEVICE and position == 0):
        return Role.OBJECT
    if keyword == "device" and (_is_torch(name) or method in _TENSOR_FACTORY_METHODS):
        return Role.OBJECT
    if keyword == "default" and _last_name(call.func) in _OPTION_CALLS:
        if names_option(call, TYPE_NAME):
            return Role.TYPE
        return Role.OPTION if names_option(call, DEVICE_NAME) or is_used_as_device(codemod, call) else Role.UNKNOWN
    if keyword in ("help", "description", "reason", "msg", "dest") or _last_name(call.func) in _PROSE_CALLS:
        return Role.LABEL
    if keyword and find_argument(name, keyword):
        return Role.LABEL
    if method in ("get", "pop", "setdefault") and position == 0:
        return Role.LABEL
    if keyword and DEVICE_NAME.search(keyword):
        return Role.STRING
    if method in _STRING_METHODS:
        return Role.COMPARED
    if is_own_variable(codemod, call, name):
        return Role.LABEL
    return _parameter_role(codemod, call, position)


def _backend_argument(codemod: Codemod, call: cst.Call, arg: cst.Arg) -> Role:
    last = (codemod.qualified(call.func) or "").split(".")[-1] or _last_name(call.func)
    keyword = arg.keyword.value if arg.keyword else None
    if keyword == "default" and last in _OPTION_CALLS:
        return Role.OPTION if names_option(call, BACKEND_NAME) else Role.UNKNOWN
    if keyword in ("help", "description", "reason", "msg") or last in _PROSE_CALLS:
        return Role.LABEL
    if keyword and BACKEND_NAME.search(keyword):
        return Role.STRING
    if last == "init_process_group" and call.args.index(arg) == 0:
        return Role.STRING
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _STRING_METHODS:
        return Role.COMPARED
    return Role.UNKNOWN


def names_option(call: cst.Call, names: re.Pattern[str]) -> bool:
    """Whether a command-line option is called by one of these names (``--device``, ``--dist-backend``)."""
    texts = [string_value(arg.value) for arg in call.args if arg.keyword is None]
    return any(text and names.search(text) for text in texts)


def is_own_variable(codemod: Codemod, call: cst.Call, name: str | None) -> bool:
    """``os.environ.get("AI_DEVICE", "cuda")``: code that follows the variable already."""
    if name not in ("os.environ.get", "os.getenv", "os.environ.setdefault"):
        return False
    return bool(call.args) and string_value(call.args[0].value) == "AI_DEVICE"


def _is_torch(name: str | None) -> bool:
    """Whether a function is torch's own; ``torch.hub.load`` hands its arguments to a function of somebody else's."""
    return name is not None and name.startswith("torch.") and not name.startswith("torch.hub.")


def _is_cuda_call(name: str | None) -> bool:
    return bool(name) and str(name).startswith("torch.cuda.")


def is_used_as_device(codemod: Codemod, option: cst.Call) -> bool:
    """Whether the value of a command-line option of any name goes to a place that takes a device."""
    flags = [text for arg in option.args if arg.keyword is None and (text := string_value(arg.value))]
    names = {flag.lstrip("-").replace("-", "_") for flag in flags if flag.startswith("--")}
    calls = (node for node in ast.walk(codemod.context.module.tree) if isinstance(node, ast.Call))
    return any(
        isinstance(value, ast.Attribute) and value.attr in names and _is_device_use(call, key)
        for call in calls
        for key, value in _arguments(call)
    )


def _parameter_role(codemod: Codemod, call: cst.Call, position: int | None) -> Role:
    """The role by the name of the parameter, for a function of the same module."""
    if position is None or not isinstance(call.func, cst.Name):
        return Role.UNKNOWN
    bindings = codemod.context.module.names.bindings(call.func.value, codemod.offset(call))
    node = bindings[0].node if len(bindings) == 1 and bindings[0].kind == "definition" else None
    arguments: ast.arguments | None = None
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments, skip = node.args, 0
    elif isinstance(node, ast.ClassDef):
        init = next((m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
        arguments, skip = (init.args if init else None), 1
    if arguments is None:
        return Role.UNKNOWN
    parameters = [*arguments.posonlyargs, *arguments.args][skip:]
    known = position < len(parameters) and DEVICE_NAME.search(parameters[position].arg)
    return Role.STRING if known else Role.UNKNOWN


def _last_name(node: cst.CSTNode) -> str | None:
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        return string_value(node.slice[0].slice.value)
    return (dotted_name(node) or "").split(".")[-1] or (node.attr.value if isinstance(node, cst.Attribute) else None)


def _argument_uses(tree: ast.Module, name: str) -> Iterator[tuple[ast.Call, str | int]]:
    """The calls that are given a variable, or a string built from it, and the keyword or position it has there."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            yield from ((call, key) for key, value in _arguments(call) if _mentions(value, name))


def _arguments(call: ast.Call) -> Iterator[tuple[str | int, ast.expr]]:
    yield from enumerate(call.args)
    yield from ((keyword.arg or "", keyword.value) for keyword in call.keywords)


def _mentions(value: ast.expr, name: str) -> bool:
    if isinstance(value, ast.Name):
        return value.id == name
    parts = ast.walk(value) if isinstance(value, ast.BinOp | ast.JoinedStr | ast.IfExp) else ()
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


def _is_device_use(call: ast.Call, key: str | int) -> bool:
    last = (ast_dotted_name(call.func) or "").split(".")[-1] or getattr(call.func, "attr", "")
    return key in ("device", "device_type", "map_location") or (key == 0 and last in ("device", "to", "autocast"))


def is_backend_use(call: ast.Call, key: str | int) -> bool:
    """Whether a call takes a collective backend at this position or keyword."""
    last = (ast_dotted_name(call.func) or "").split(".")[-1]
    return key == "backend" or (key == 0 and last == "init_process_group")
