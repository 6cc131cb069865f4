"""Imports: where the helper's goes, and which became unused by the edits."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from codemods.analysis.module import Module
from codemods.source.edits import Edit


def choose_name(module: Module, wanted: str) -> str:
    """A name for the helper that nothing else in the file uses."""
    taken = module.names.all_bound()
    if wanted not in taken or helper_is_imported(module, wanted):
        return wanted
    name = "_" + wanted
    while name in taken:
        name = "_" + name
    return name


def helper_is_imported(module: Module, name: str) -> bool:
    """Whether the module level binds ``name`` by one import, and nothing else anywhere does."""
    bindings = module.names.module.bindings.get(name, [])
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
    before_use = [s for s in module.tree.body if module.statements.start(s) <= first_use]
    anchor = _last_import_at_the_top(before_use[:-1])
    if (
        anchor is not None
        and anchor in removals
        and len(removals[anchor]) == 1
        and removals[anchor][0].end >= module.lines.end(anchor)
    ):
        (gone,) = removals.pop(anchor)
        added = Edit(gone.start, gone.end, statement if gone.replacement else statement + module.newline)
    elif anchor is not None:
        added = _behind(module, anchor, statement, first_use)
    else:
        added = _at_the_top(module, statement)
    return [added, *(edit for edits in removals.values() for edit in edits)]


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


def _first_statement_that_may_move(body: Sequence[ast.stmt]) -> int:
    """Index behind the docstring and the ``__future__`` imports."""
    index = 1 if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
    while index < len(body):
        statement = body[index]
        if not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        index += 1
    return index


def _at_the_top(module: Module, statement: str) -> Edit:
    body = module.tree.body
    index = _first_statement_that_may_move(body)
    at = module.statements.start(body[index]) if index < len(body) else len(module.utf8)
    followed_by_import = index < len(body) and isinstance(body[index], ast.Import | ast.ImportFrom)
    return Edit(at, at, statement + module.newline * (1 if followed_by_import else 2))


def _behind(module: Module, anchor: ast.stmt, statement: str, first_use: int) -> Edit:
    end = module.lines.end(anchor)
    line_end = _line_end(module.utf8, end)
    if end <= first_use < line_end or module.utf8[end:line_end].lstrip().startswith(b";"):
        return Edit(end, end, f"; {statement}")
    newline = module.newline
    following = module.utf8[line_end:].lstrip(b"\r\n")
    blank_below = module.utf8[line_end:].startswith((b"\n\n", b"\r\n\r\n", b"\r\r")) or not following
    local = isinstance(anchor, ast.ImportFrom) and anchor.level > 0
    gap = newline if blank_below and not local else ""
    return Edit(line_end, line_end, f"{newline}{gap}{statement}")


def _line_end(utf8: bytes, offset: int) -> int:
    """Where the line that holds an offset ends, its line end excluded."""
    match = re.compile(rb"\r\n|\n|\r").search(utf8, offset)
    return match.start() if match else len(utf8)


def _removals(module: Module, changed: Sequence[Edit]) -> Iterator[tuple[ast.stmt, list[Edit]]]:
    """By statement, the edits that remove imports of torch which the edits left without a use."""
    if module.path.name == "__init__.py":
        return  # its imports are what the package offers
    gone = _names_without_use(module, changed)
    for statement in ast.walk(module.tree) if gone else ():
        if isinstance(statement, ast.Import | ast.ImportFrom) and not _is_changed(module, statement, changed):
            edits = list(_removal(module, statement, gone))
            if edits:
                yield statement, edits


def _names_without_use(module: Module, changed: Sequence[Edit]) -> set[str]:
    """Imported names of torch whose every use lies in a text that is replaced."""
    stretches = sorted((edit.start, edit.end) for edit in changed)
    starts = [start for start, _ in stretches]

    def is_replaced(name: str, offset: int) -> bool:
        index = bisect_left(starts, offset + len(name.encode())) - 1
        return index >= 0 and offset < stretches[index][1]

    candidates = set(module.names.imported_as("torch"))
    used = {name for name, _ in module.names.uses if name in candidates}
    used -= {name for name, offset in module.names.uses if name in candidates and not is_replaced(name, offset)}
    if not used:
        return used
    words = {word for edit in changed for word in re.findall(r"\w+", edit.replacement)}
    return used - words - set(_words_in_strings(module.tree))


def _words_in_strings(tree: ast.Module) -> Iterator[str]:
    """Words of short texts: an entry of ``__all__``, an annotation in quotes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield from re.findall(r"\w+", node.value)


def _is_changed(module: Module, statement: ast.stmt, changed: Sequence[Edit]) -> bool:
    start, end = module.lines.start(statement), module.lines.end(statement)
    return any(start <= edit.start < end for edit in changed)


def _removal(module: Module, statement: ast.Import | ast.ImportFrom, names: set[str]) -> Iterator[Edit]:
    """The edits that take unused names out of an import: with its line if none is left, else each with its comma."""
    unused = [_bound(alias) in names and _is_replaced(statement, alias) for alias in statement.names]
    if all(unused):
        yield _whole_line(module, statement)
        return
    aliases = statement.names
    last_kept = max(i for i, is_unused in enumerate(unused) if not is_unused)
    for i in range(last_kept):
        if unused[i]:
            yield Edit(module.lines.start(aliases[i]), module.lines.start(aliases[i + 1]), "")
    if last_kept + 1 < len(aliases):
        yield Edit(module.lines.end(aliases[last_kept]), module.lines.end(aliases[-1]), "")


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
    ending = re.compile(rb"\r\n|\n|\r").match(module.utf8, line_end)
    return Edit(line_start, ending.end() if ending else line_end, "")


def _is_only_one(module: Module, statement: ast.stmt) -> bool:
    for node in ast.walk(module.tree):
        for block in ("body", "orelse", "finalbody"):
            if getattr(node, block, None) == [statement]:
                return not isinstance(node, ast.Module)
    return False
