"""Configuration: YAML, JSON and TOML, with what they hold of other kinds - environment, containers, steps of CI."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from codemods.companions.entries import Entry, json_entries, toml_entries, yaml_entries
from codemods.companions.images import image_remark
from codemods.companions.remarks import Knowledge, Remark
from codemods.companions.requirements import dependency_remarks
from codemods.companions.settings import value_remark
from codemods.companions.shell import command_remarks, shell_remarks
from codemods.companions.shell_words import Word
from codemods.companions.variables import variable_remark
from codemods.companions.vocabulary import load_vocabulary

_READERS = {"yaml": yaml_entries, "json": json_entries, "toml": toml_entries}
_ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)\Z", re.DOTALL)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*\Z")


def config_remarks(text: str, kind: str, known: Knowledge) -> Iterator[Remark]:
    """What the rules say of a configuration file of a kind."""
    entries = list(_READERS[kind](text))
    for entry in entries:
        yield from _entry(entry, known)
    yield from _commands(entries, known)
    yield from dependency_remarks(entries, known)


def _entry(entry: Entry, known: Knowledge) -> Iterator[Remark]:
    if _is_shell(entry):
        yield from shell_remarks(entry.value, entry.start, known)
    elif not entry.is_block and entry.path[:1] != ("defaults",):  # Hydra's: they name files, not values
        value = entry.value
        found = (
            value_remark(entry.path, value, entry.start, entry.end, known)
            or _variable(entry)
            or _container(entry)
            or (image_remark(value, entry.start, entry.end) if entry.path and _names_image(entry.path[-1]) else None)
        )
        if found is not None:
            yield found


def _commands(entries: Sequence[Entry], known: Knowledge) -> Iterator[Remark]:
    """``command: [python, train.py, --device, cuda]``"""
    for path, elements in groupby(entries, key=lambda entry: entry.path if entry.is_item else None):
        if path and path[-1] in load_vocabulary().command_settings:
            words = [entry.word for entry in elements]
            # The arguments of a program that is named elsewhere are those of Python, since they are judged at all.
            program = [Word("python", words[0].start, words[0].end)] if words[0].text.startswith("-") else []
            yield from command_remarks([*program, *words], known)


def _is_shell(entry: Entry) -> bool:
    words = load_vocabulary().shell_settings
    return bool(entry.path) and entry.path[-1] in words


def _variable(entry: Entry) -> Remark | None:
    """``NCCL_DEBUG: INFO``, ``- NCCL_DEBUG=INFO``, and ``name: NCCL_DEBUG`` of Kubernetes."""
    if assignment := _ASSIGNMENT.match(entry.value):
        return variable_remark(assignment[1], assignment[2], entry.start, entry.end, expands="$" in assignment[2])
    name = entry.path[-1] if entry.path else ""
    if name == "name" and _VARIABLE.match(entry.value):
        return variable_remark(entry.value, "", entry.start, entry.end, expands=True)
    if _VARIABLE.match(name):
        return variable_remark(name, entry.value, entry.start, entry.end, expands="$" in entry.value)
    return None


def _container(entry: Entry) -> Remark | None:
    name = entry.path[-1] if entry.path else ""
    known = any(name in names and entry.value in values for names, values in load_vocabulary().container_settings)
    if known or (entry.is_item and entry.value.startswith("--gpus")):
        return Remark(entry.start, entry.end, "UC716")
    return None


def _names_image(key: str) -> bool:
    return key.lower().endswith("image") or key.lower() == "container"
