"""Runs the codemods over a module: over the statements that hit, or over the whole module at once.

Both ways give the same findings. The first is far faster, since only small pieces go through libcst; the second is
for texts of which a piece cannot be cut out safely.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

import libcst as cst

from codemods.analysis.integer_devices import index_parameters
from codemods.analysis.module import Module
from codemods.analysis.project import Project
from codemods.analysis.scan import load_triggers
from codemods.analysis.statements import Slice
from codemods.findings import Finding
from codemods.source.document import SourceError
from codemods.transformers import CODEMODS
from codemods.transformers.base import Codemod, Context, Draft
from codemods.transformers.composition import Composition

_ALIASED = ("torch.cuda", "torch.backends.cuda", "torch.backends.cudnn", "torch.random", "torch.fft")
_SPELLED_OUT = ("torch.nn", "torch.nn.functional", "torch.optim", "torch.distributed", "torch.utils.data")
"""Modules that hide nothing under an alias: whatever the rules look for in them is a trigger by its own name."""


def rewrite(
    module: Module,
    project: Project,
    helper: str,
    helper_module: str,
    families: frozenset[str] = frozenset(),
    *,
    whole_module: bool = False,
) -> list[Finding]:
    """What the rules find in a module, in the order of the text.

    Args:
        helper: the local name of the helper
        helper_module: the helper as ``from ... import`` names it
        families: the families of rules that are off unless asked for, and were
        whole_module: give libcst the module as a whole

    Raises:
        SourceError: libcst cannot read the text
    """
    context = Context(module, project, helper, helper_module, families)
    codemods = [codemod(context) for codemod in CODEMODS if not codemod.family or codemod.family in families]
    composition = Composition(context, codemods)
    try:
        places = _places(module, project, codemods, families)
        if whole_module or not _by_statements(composition, module, places):
            context.drafts.clear()
            _as_a_whole(composition, module)
    except RecursionError:
        raise SourceError(module.path, "is nested too deeply to be read") from None
    drafts = sorted(context.drafts, key=lambda draft: (draft.start, draft.end, draft.rule))
    return [_finding_in_group(draft, module, helper) for draft in drafts]


def _finding_in_group(draft: Draft, module: Module, helper: str) -> Finding:
    """The finding of a draft, in one group with the availability guard around it.

    A device string that cannot be converted is part of the group as well, and so holds the guard back.
    """
    if draft.group is None and (draft.edits or draft.rule == "UC109"):
        draft.group = _guard_around(module, draft.start)
    return draft.finding(module, helper)


def _by_statements(composition: Composition, module: Module, places: list[int]) -> bool:
    """Visits the statements that hit; false if one of them cannot be read on its own."""
    for piece in module.statements.slices(places):
        tree = _parsed(piece, module.utf8)
        if tree is None:
            return False
        composition.run(tree, piece.start - len(piece.prefix), places)
    return True


def _as_a_whole(composition: Composition, module: Module) -> None:
    try:
        tree = cst.parse_module(module.text)
    except cst.ParserSyntaxError as error:
        raise SourceError(module.path, f"libcst cannot read it: {error.message}", error.raw_line) from None
    if tree.code != module.text:
        raise SourceError(module.path, "libcst does not print it back as it was; left alone")
    composition.run(tree, 0)


def _parsed(piece: Slice, utf8: bytes) -> cst.Module | None:
    text = piece.module(utf8).decode()
    try:
        tree = cst.parse_module(text)
    except cst.ParserSyntaxError:
        return None
    return tree if _cannot_be_lost(text) or tree.code == text else None


def _cannot_be_lost(text: str) -> bool:
    """Whether a text holds nothing that libcst may not print back: lone carriage returns, form feeds, continuations."""
    return "\r" not in text and "\f" not in text and "\\\n" not in text


def _places(module: Module, project: Project, codemods: Sequence[Codemod], families: frozenset[str]) -> list[int]:
    """Offsets that the codemods should see: trigger words, uses of names for something of CUDA, and others."""
    names = module.names.aliases(_ALIASED, besides=_SPELLED_OUT)
    names |= module.index_variables | index_parameters(module.names, project.index_arguments)
    uses = [offset for name, offset in module.names.uses if name in names]
    made = module.names.offsets_of(module.device_variables)
    own = (offset for codemod in codemods for offset in codemod.places())
    return sorted({*load_triggers(families).offsets(module.utf8), *uses, *made, *own, *_settings(module, project)})


def _settings(module: Module, project: Project) -> Iterator[int]:
    """Offsets of the names of settings that can name CUDA."""
    for name in project.cuda_settings:
        yield from (match.start() for match in re.finditer(re.escape(name).encode(), module.utf8, re.IGNORECASE))


def _guard_around(module: Module, offset: int) -> str | None:
    """The innermost ``if`` or conditional expression around an offset that asks whether CUDA is available."""
    around = module.statements.path_to(offset)
    if not around:
        return None
    for choice in reversed(list(_choices(around[-1], module, offset))):
        return f"choice@{module.lines.start(choice)}"
    for statement in reversed(around):
        if isinstance(statement, ast.If) and _asks_availability(statement.test):
            return f"guard@{module.lines.start(statement)}"
    return None


def _choices(statement: ast.stmt, module: Module, offset: int) -> Iterator[ast.IfExp]:
    choices = (node for node in ast.walk(statement) if isinstance(node, ast.IfExp))
    for choice in choices:
        around = module.lines.start(choice) <= offset < module.lines.end(choice)
        if around and _asks_availability(choice.test):
            yield choice


def _asks_availability(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "is_available" for node in ast.walk(test))
