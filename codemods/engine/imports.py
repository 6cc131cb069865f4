"""Imports: where the helper's goes, and which became unused by the edits."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from codemods.analysis.module import Module, Part
from codemods.source.document import SourceError
from codemods.source.edits import Edit

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r)[ \t\f]*(?:\r\n|\n|\r)")


def choose_name(module: Module, wanted: str) -> str:
    """A name for the helper that nothing else in the file uses."""
    taken = module.names.all_bound()
    if wanted not in taken or helper_is_imported(module, wanted):
        return wanted
    name = "_" + wanted
    while name in taken:
        name = "_" + name
    return name


def helper_is_imported(module: Module, name: str, before: int | None = None) -> bool:
    """Whether the module level binds ``name`` by one import, and nothing else anywhere does.

    Args:
        before: offset of a use that the import has to precede
    """
    bindings = module.names.module.bindings.get(name, [])
    if before is not None and any(binding.offset > before for binding in bindings):
        return False
    here = bool(bindings) and all(b.kind == "import" and (b.target or "").split(".")[-1] == name for b in bindings)
    elsewhere = sum(name in scope.bindings for scope in module.names.scopes)
    return here and elsewhere == 1


def import_edits(module: Module, changed: Sequence[Edit], statement: str | None, first_use: int) -> list[Edit]:
    """The edits of imports that other edits call for: torch's that nothing uses any more, and the helper's.

    Args:
        statement: the import to add, ``None`` for none
        first_use: offset of the first place that needs the added name
    """
    removals = dict(_removals(module, changed))
    if statement is None:
        return [edit for edits in removals.values() for edit in edits]
    before_use = [
        s for s in module.tree.body if module.statements.start(s) <= first_use and _part(module, s).takes_imports
    ]
    anchor = _anchor(module, [s for s in before_use if module.lines.end(s) <= first_use])
    if anchor is not None and _takes_all(module, anchor, removals.get(anchor, [])):
        removals.pop(anchor)
        added = Edit(module.statements.start(anchor), module.lines.end(anchor), statement)
    elif anchor is not None:
        added = _behind(module, anchor, statement, first_use)
    else:
        added = _at_the_top(module, before_use, statement)
    return [added, *(edit for edits in removals.values() for edit in edits)]


def _part(module: Module, statement: ast.stmt) -> Part:
    """The part that a statement stands in: the one that it ends in, where something was put before the part."""
    return module.part_at(module.lines.end(statement))


def _anchor(module: Module, before: Sequence[ast.stmt]) -> ast.stmt | None:
    """The statement behind which the helper's import goes: the last one of the imports at the top.

    In a notebook they are those of the first cell that imports torch, else of the first one that imports anything.
    """
    parts = sorted(_by_part(module, before), key=lambda body: not any(map(_imports_torch, body)))
    anchor = next((last for body in parts if (last := _last_import_at_the_top(body)) is not None), None)
    return _behind_changes_of_the_path(module, before, anchor)


def _behind_changes_of_the_path(module: Module, before: Sequence[ast.stmt], anchor: ast.stmt | None) -> ast.stmt | None:
    """The anchor, or one behind the last change of ``sys.path``: the helper may be found by it alone."""
    changes = [i for i, s in enumerate(before) if _changes_path(module, s)]
    if not changes or (anchor is not None and before.index(anchor) > changes[-1]):
        return anchor
    change = before[changes[-1]]
    following = [s for s in before[changes[-1] + 1 :] if _part(module, s) == _part(module, change)]
    return _last_import_at_the_top(following) or change


def _changes_path(module: Module, statement: ast.stmt) -> bool:
    text = module.utf8[module.lines.start(statement) : module.lines.end(statement)]
    return b"sys.path" in text and not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _by_part(module: Module, body: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    return [list(group) for _, group in groupby(body, key=lambda s: _part(module, s))]


def _imports_torch(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return statement.level == 0 and (statement.module or "").partition(".")[0] == "torch"
    return isinstance(statement, ast.Import) and any(a.name.partition(".")[0] == "torch" for a in statement.names)


def _takes_all(module: Module, statement: ast.stmt, removals: Sequence[Edit]) -> bool:
    """Whether an import is removed as a whole, so that another one can take its place (and its comment)."""
    start, end = module.statements.start(statement), module.lines.end(statement)
    return any(edit.start <= start and end <= edit.end for edit in removals)


def _last_import_at_the_top(body: Sequence[ast.stmt]) -> ast.stmt | None:
    """The last import of the preamble: of all that stands before the first definition or other work."""
    last = None
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            last = statement
        elif not _belongs_to_preamble(statement):
            break
    if isinstance(last, ast.ImportFrom) and last.module == "__future__":
        return None
    return last


def _belongs_to_preamble(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant | ast.Call)
    if isinstance(statement, ast.Try | ast.If):
        blocks = [*statement.body, *statement.orelse, *(s for h in getattr(statement, "handlers", []) for s in h.body)]
        return all(isinstance(s, ast.Import | ast.ImportFrom | ast.Pass | ast.Assign | ast.Expr) for s in blocks)
    return isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign)


def _first_statement_that_may_move(body: Sequence[ast.stmt]) -> ast.stmt:
    """The first one behind the docstring, the ``__future__`` imports, and constants on lines of their own.

    A magic of a notebook looks like such a constant; it is not parted from a statement on its line.
    """
    first = body[0]
    for statement, following in pairwise(body):
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        value = statement.value if isinstance(statement, ast.Expr) else None
        is_docstring = statement is body[0] and isinstance(value, ast.Constant) and isinstance(value.value, str)
        is_line = isinstance(value, ast.Constant) and statement.end_lineno != following.lineno
        if not (is_future or is_docstring or is_line):
            break
        first = following
    return first


def _at_the_top(module: Module, before_use: Sequence[ast.stmt], statement: str) -> Edit:
    """The import at the top of the file, or of the cell."""
    if not before_use:
        raise SourceError(module.path, "left as it is: no cell before the first use can import the helper")
    following = _first_statement_that_may_move(_by_part(module, before_use)[-1])
    at = module.statements.start(following)
    return Edit(at, at, statement + module.newline * (1 + _blank_lines_before(following)))


def _blank_lines_before(following: ast.stmt) -> int:
    """How many blank lines PEP 8 wants between an import and what follows it."""
    if isinstance(following, ast.Import | ast.ImportFrom):
        return 0
    return 2 if isinstance(following, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else 1


def _behind(module: Module, anchor: ast.stmt, statement: str, first_use: int) -> Edit:
    end = module.lines.end(anchor)
    part_end = module.part_at(end).end
    line_end = min(_line_end(module.utf8, end), part_end)
    if end <= first_use < line_end or module.utf8[end:line_end].lstrip().startswith(b";"):
        return Edit(end, end, f"; {statement}")
    newline = module.newline
    below = module.utf8[line_end:part_end]
    blank_below = _BLANK_LINE.match(below) is not None or not below.strip()
    local = isinstance(anchor, ast.ImportFrom) and anchor.level > 0
    gap = newline if blank_below and not local else ""
    ending = _LINE_END.match(module.utf8, line_end, part_end)
    if ending is None:
        return Edit(line_end, line_end, f"{newline}{gap}{statement}")
    return Edit(ending.end(), ending.end(), f"{gap}{statement}{newline}")


def _line_end(utf8: bytes, offset: int) -> int:
    """Where the line that holds an offset ends, its line end excluded."""
    match = _LINE_END.search(utf8, offset)
    return match.start() if match else len(utf8)


def _removals(module: Module, changed: Sequence[Edit]) -> Iterator[tuple[ast.stmt, list[Edit]]]:
    """By statement, the edits that remove imports of torch which the edits left without a use."""
    if module.path.name == "__init__.py":
        return  # its imports are what the package offers
    gone = _names_without_use(module, changed)
    for statement in module.names.imports if gone else ():
        if not _stays(module, statement) and not _is_changed(module, statement, changed):
            edits = list(_removal(module, statement, gone))
            if edits:
                yield statement, edits


def _names_without_use(module: Module, changed: Sequence[Edit]) -> set[str]:
    """Imported names of torch whose every use lies in a text that is replaced."""
    stretches = sorted((edit.start, edit.end) for edit in changed)
    starts = [start for start, _ in stretches]
    becomes_attribute = {edit.end for edit in changed if edit.replacement.endswith(".")}

    def is_replaced(name: str, offset: int) -> bool:
        index = bisect_left(starts, offset + len(name.encode())) - 1
        return (index >= 0 and offset < stretches[index][1]) or offset in becomes_attribute

    candidates = set(module.names.imported_as("torch"))
    used = {name for name, _ in module.names.uses if name in candidates}
    used -= {name for name, offset in module.names.uses if name in candidates and not is_replaced(name, offset)}
    if not used:
        return used
    words = {word for edit in changed for word in re.findall(r"(?<![\w.])\w+", edit.replacement)}
    return used - words - set(_words_in_strings(module.names.strings)) - set(re.findall(r"\w+", module.unread))


def _words_in_strings(strings: Sequence[str]) -> Iterator[str]:
    """Words of short texts: an entry of ``__all__``, an annotation in quotes."""
    for text in strings:
        if len(text) < 200:
            yield from re.findall(r"\w+", text)


def _is_changed(module: Module, statement: ast.stmt, changed: Sequence[Edit]) -> bool:
    start, end = module.lines.start(statement), module.lines.end(statement)
    return any(start <= edit.start < end for edit in changed)


def _stays(module: Module, statement: ast.Import | ast.ImportFrom) -> bool:
    """``import torch`` in a notebook: whoever goes on in it expects the name."""
    return module.is_notebook and isinstance(statement, ast.Import) and any(a.name == "torch" for a in statement.names)


def _removal(module: Module, statement: ast.Import | ast.ImportFrom, names: set[str]) -> Iterator[Edit]:
    """The edits that take unused names out of an import: with its line if none is left, else each with its comma."""
    unused = [_bound(alias) in names and _is_replaced(statement, alias) for alias in statement.names]
    if all(unused):
        yield _whole_line(module, statement)
        return
    aliases = statement.names
    last_kept = max(i for i, is_unused in enumerate(unused) if not is_unused)
    for i, alias in enumerate(aliases):
        line = _own_line(module, alias)
        if unused[i] and line is not None:
            yield line
        elif unused[i] and i < last_kept:
            yield Edit(module.lines.start(alias), module.lines.start(aliases[i + 1]), "")
        elif unused[i]:
            yield Edit(module.lines.end(aliases[i - 1]), module.lines.end(alias), "")


def _own_line(module: Module, alias: ast.alias) -> Edit | None:
    """The removal of a name with the line that it has for itself, in a list over several lines."""
    start, end = module.lines.start(alias), module.lines.end(alias)
    line_start = module.lines.starts[module.lines.position(start)[0] - 1]
    line_end = _line_end(module.utf8, end)
    rest = module.utf8[end:line_end].strip()
    ending = _LINE_END.match(module.utf8, line_end)
    alone = not module.utf8[line_start:start].strip() and re.fullmatch(rb",?[ \t]*(?:#.*)?", rest) is not None
    return Edit(line_start, ending.end(), "") if alone and ending is not None else None


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _is_replaced(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    """Imports that the codemods replace: ``torch`` itself and whatever lies in ``torch.cuda`` or is a part of AMP."""
    if isinstance(statement, ast.Import):
        return alias.name == "torch" or alias.name.startswith("torch.cuda")
    full = f"{statement.module}.{alias.name}"
    return statement.level == 0 and (full.startswith(("torch.cuda", "torch.amp.")) or full == "torch.random.fork_rng")


def _whole_line(module: Module, statement: ast.stmt) -> Edit:
    """Removes a statement with its line, or leaves ``pass`` where a block would be empty or the line holds more."""
    start, end = module.lines.start(statement), module.lines.end(statement)
    line_start = module.lines.starts[module.lines.position(start)[0] - 1]
    line_end = _line_end(module.utf8, end)
    rest = module.utf8[end:line_end].strip()
    alone = not module.utf8[line_start:start].strip() and (not rest or rest.startswith(b"#"))
    if not alone or _is_only_one(module, statement):
        return Edit(start, end, "pass")
    ending = _LINE_END.match(module.utf8, line_end)
    gone = ending.end() if ending else line_end
    blank = re.compile(rb"[ \t]*(?:\r\n|\n|\r)").match(module.utf8, gone)
    if blank is not None and module.utf8[:line_start].rstrip().endswith(b":"):
        gone = blank.end()  # no blank line stays between a header and its block
    return Edit(line_start, gone, "")


def _is_only_one(module: Module, statement: ast.stmt) -> bool:
    for node in ast.walk(module.tree):
        for block in ("body", "orelse", "finalbody"):
            if getattr(node, block, None) == [statement]:
                return not isinstance(node, ast.Module)
    return False
