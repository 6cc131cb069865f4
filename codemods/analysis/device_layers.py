"""Where a module has the device layer of a framework at hand: DeepSpeed's ``get_accelerator()``, an ``Accelerator``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.analysis.names import Binding, Names, Scope, dotted_name
from codemods.frameworks import Layer, load_layers


@dataclass(frozen=True)
class LayerInUse:
    """A layer, and how a piece of code writes it."""

    layer: Layer
    expression: str
    """E.g. ``get_accelerator()`` or ``accelerator``."""
    binding: Binding


class DeviceLayers:
    """The device layers of one module."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._found = list(_layers(names))

    def __bool__(self) -> bool:
        return bool(self._found)

    def at(self, offset: int) -> LayerInUse | None:
        """The layer that code at an offset can use: bound once, before it, in a scope that it sees."""
        visible = (found for name, found in self._found if self._names.bindings(name, offset) == [found.binding])
        return next((found for found in visible if found.binding.offset < offset), None)


def _layers(names: Names) -> Iterator[tuple[str, LayerInUse]]:
    for scope in names.scopes:
        for name, bindings in scope.bindings.items():
            if len(bindings) == 1:
                yield from ((name, found) for found in _layer(names, name, bindings[0], scope))


def _layer(names: Names, name: str, binding: Binding, scope: Scope) -> Iterator[LayerInUse]:
    if scope.kind == "class":
        return
    for layer in load_layers() if binding.kind in ("import", "assign") else ():
        if binding.target in layer.call:
            yield LayerInUse(layer, f"{name}()", binding)
        elif isinstance(binding.value, ast.Call) and _class(names, binding.value, binding) in layer.made_by:
            yield LayerInUse(layer, name, binding)


def _class(names: Names, call: ast.Call, binding: Binding) -> str | None:
    return names.qualified(dotted_name(call.func) or "", binding.offset)
