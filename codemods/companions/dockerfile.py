"""Dockerfiles: base images, environment, and what is installed and run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from codemods.companions.entries import json_entries
from codemods.companions.images import image_remark
from codemods.companions.packages import package_remark
from codemods.companions.remarks import Knowledge, Remark
from codemods.companions.shell import command_remarks, shell_remarks
from codemods.companions.shell_words import commands
from codemods.companions.variables import variable_remark

_INSTRUCTION = re.compile(
    r"""^[ \t]*(?P<name>[A-Za-z]+)(?=[ \t\\])
    (?P<rest>(?:[^\n]*\\[ \t]*\r?\n(?:[ \t]*\#[^\n]*\n|[ \t]*\r?\n)*)*[^\n]*(?:\n|\Z))""",
    re.MULTILINE | re.VERBOSE,
)
_COMMENT_WITHIN = re.compile(r"(?<=\n)[ \t]*(?:#[^\n]*)?\r?\n")
_HERE_DOCUMENT = re.compile(r"<<-?[\"']?(\w+)")
_FLAG = re.compile(r"(?:[ \t]+--[\w-]+=\S+)+")
_EXEC_FORM = re.compile(r"\s*\[")


def dockerfile_remarks(text: str, known: Knowledge) -> Iterator[Remark]:
    """What the rules say of a Dockerfile."""
    done = 0
    for match in _INSTRUCTION.finditer(text):
        if match.start() < done:
            continue
        name, start = match["name"].upper(), match.start("rest")
        # Docker drops comments and empty lines between continued lines; blanks keep every place where it is.
        rest = _COMMENT_WITHIN.sub(lambda found: " " * len(found[0]), match["rest"])
        done = match.end()
        if here := _HERE_DOCUMENT.search(rest):
            closing = re.compile(rf"^\t*{here[1]}\r?$", re.MULTILINE).search(text, done)
            rest, done = (rest + text[done : closing.end()], closing.end()) if closing else (rest, done)
        if name == "FROM":
            yield from _images(rest, start)
        elif name in ("ENV", "ARG"):
            yield from _environment(rest, start, known, is_argument=name == "ARG")
        elif name in ("RUN", "CMD", "ENTRYPOINT"):
            flags = _FLAG.match(rest)
            yield from _run(rest[flags.end() if flags else 0 :], start + (flags.end() if flags else 0), known)


def _images(rest: str, start: int) -> Iterator[Remark]:
    words = [match for match in re.finditer(r"[^\s\\]+", rest) if not match[0].startswith("--")]
    if words:
        remark = image_remark(words[0][0], start + words[0].start(), start + words[0].end())
        if remark is not None:
            yield remark


def _environment(rest: str, start: int, known: Knowledge, *, is_argument: bool) -> Iterator[Remark]:
    words = [word for command in commands(rest)[-1:] for word in command.words]
    if words and not is_argument and "=" not in words[0].text:
        first, last = words[0], words[-1]  # the old form: ENV NAME value
        value = " ".join(word.text for word in words[1:])
        yield from _variable(first.text, value, start + first.start, start + last.end, any(w.expands for w in words))
        return
    for word in words:
        name, _, value = word.text.partition("=")
        place = start + word.start, start + word.end
        default = _default(value, *place, known) if is_argument else None
        if default is not None:
            yield default
        else:
            yield from _variable(name, value, *place, word.expands)


def _default(value: str, start: int, end: int, known: Knowledge) -> Remark | None:
    """The default of an argument that is an image, or what is to be installed."""
    return image_remark(value, start, end) or (package_remark(value, start, end, known) if "://" in value else None)


def _variable(name: str, value: str, start: int, end: int, expands: bool) -> Iterator[Remark]:
    remark = variable_remark(name, value, start, end, expands=expands)
    if remark is not None:
        yield remark


def _run(rest: str, start: int, known: Knowledge) -> Iterator[Remark]:
    if not _EXEC_FORM.match(rest):
        yield from shell_remarks(rest, start, known)
        return
    words = [replace(entry, start=start + entry.start).word for entry in json_entries(rest)]
    if words:
        yield from command_remarks(words, known)
