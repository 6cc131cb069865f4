"""Command-line options: the values that an option for a device or a collective backend accepts, and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst

from codemods.findings import Tier
from codemods.transformers.base import Codemod
from codemods.transformers.expressions import NO_SPACE, argument, cuda_device, string_value, with_value
from codemods.transformers.roles import BACKEND_NAME, DEVICE_NAME, TYPE_NAME, is_used_as_device, names_option

_SEVERAL_VALUES = {"action", "nargs", "is_flag", "multiple", "flag_value", "count"}
"""Keywords of options whose value is not one string."""


@dataclass(frozen=True)
class _Kind:
    """What an option selects, and the functions of the helper that serve it."""

    rule: str
    names: re.Pattern[str]
    cuda: re.Pattern[str]
    """A value that names CUDA."""
    choices: str
    translation: str


_DEVICE = _Kind("UC206", DEVICE_NAME, re.compile(r"cuda(?::\d+)?\Z"), "device_choices", "device_name")
_BACKEND = _Kind("UC301", BACKEND_NAME, re.compile(r"nccl\Z"), "backend_choices", "backend")


class Options(Codemod):
    """Makes an option accept the selected device, and take a value that names CUDA for it."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        rule, changed = self._with_choices(original_node, updated_node)
        if self._defines_option(original_node):
            kind = next((kind for kind in (_DEVICE, _BACKEND) if self._selects(original_node, kind)), None)
            typed = self._with_type(original_node, changed, kind) if kind is not None else None
            if kind is not None and typed is not None:
                rule, changed = kind.rule, typed
        return self.rewrite(rule, original_node, changed, tier=Tier.SAFE) if rule else updated_node

    # -- choices ---------------------------------------------------------------------------------------------------

    def _with_choices(self, original: cst.Call, updated: cst.Call) -> tuple[str, cst.Call]:
        """The rule and the call with the selected device among its choices; an empty rule where nothing is to do."""
        choices = self._choices(original)
        kind = _kind(choices.value) if choices is not None else None
        if choices is None or kind is None or not self._is_for(original, kind):
            return "", updated
        position = original.args.index(choices)
        wrapped = self.call_helper(kind.choices, updated.args[position].value)
        return kind.rule, with_value(updated, position, wrapped)

    def _choices(self, call: cst.Call) -> cst.Arg | None:
        """The argument that lists an option's values."""
        function = call.func
        if isinstance(function, cst.Attribute) and function.attr.value == "add_argument":
            return argument(call, None, "choices")
        return argument(call, 0, "choices") if self.qualified(function) == "click.Choice" else None

    def _is_for(self, call: cst.Call, kind: _Kind) -> bool:
        """Whether the option is called accordingly; a ``click.Choice`` does not know its option."""
        return names_option(call, kind.names) or self.qualified(call.func) == "click.Choice"

    # -- type ------------------------------------------------------------------------------------------------------

    def _defines_option(self, call: cst.Call) -> bool:
        """Whether a call defines an option with one value, whose ``type`` may be a function."""
        function = call.func
        adds = isinstance(function, cst.Attribute) and function.attr.value == "add_argument"
        several = any(arg.star or (arg.keyword and arg.keyword.value in _SEVERAL_VALUES) for arg in call.args)
        return (adds or self.qualified(function) == "click.option") and not several

    def _selects(self, call: cst.Call, kind: _Kind) -> bool:
        """Whether an option takes names of devices or backends, CUDA's among them."""
        if not names_option(call, kind.names) or names_option(call, TYPE_NAME):
            return False
        listed = (argument(call, None, "default"), argument(call, None, "choices"))
        if any(kind.cuda.match(text) for arg in listed if arg is not None for text in _texts(arg.value)):
            return True
        return kind is _DEVICE and self._is_of_torch() and is_used_as_device(self, call)

    def _is_of_torch(self) -> bool:
        return any(True for _ in self.context.module.names.imported_as("torch"))

    def _with_type(self, original: cst.Call, updated: cst.Call, kind: _Kind) -> cst.Call | None:
        """The call with a type that translates what is given on the command line, ``None`` where its own type stays."""
        type_ = argument(original, None, "type")
        if type_ is None:
            return self._with_new_type(original, updated, self.helper(kind.translation))
        if isinstance(type_.value, cst.Name) and type_.value.value == "str":
            translation = self.helper(kind.translation)
        elif kind is _DEVICE and self.qualified(type_.value) == "torch.device":
            translation = self.helper("device")
        else:
            return None
        return with_value(updated, original.args.index(type_), translation)

    def _with_new_type(self, original: cst.Call, updated: cst.Call, type_: cst.BaseExpression) -> cst.Call | None:
        """``type=...`` behind the default, or the choices; without either of them nothing says what is accepted."""
        beside = argument(original, None, "default") or argument(original, None, "choices")
        if beside is None:
            return None
        position = original.args.index(beside)
        new = cst.Arg(type_, keyword=cst.Name("type"), equal=NO_SPACE)
        kept = updated.args[position]
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        args = [*updated.args]
        args[position : position + 1] = [kept.with_changes(comma=comma), new.with_changes(comma=kept.comma)]
        return updated.with_changes(args=args)


def _kind(values: cst.BaseExpression) -> _Kind | None:
    """What a list of values is of, ``None`` if it names nothing of CUDA."""
    if not isinstance(values, cst.List | cst.Tuple):
        return None
    if any(cuda_device(element.value) for element in values.elements):
        return _DEVICE
    return _BACKEND if any(string_value(element.value) == "nccl" for element in values.elements) else None


def _texts(node: cst.CSTNode) -> list[str]:
    text = string_value(node)
    return [text] if text is not None else [found for child in node.children for found in _texts(child)]
