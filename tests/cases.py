"""Reads ``fixtures/cases`` and runs the programs in it.

A case is a folder with ``case.toml``, the input, and the output if anything may change: ``input.py`` and ``output.py``,
or the folders ``input`` and ``output`` where a case has several files. Keys of ``case.toml``:

    title, expected     what the case is about, and what is right
    choice              what we chose where more than one answer would be right
    waits               what cannot be done yet; the rest of the case is tested all the same
    findings            "line CODE tier" in the order of the text
    says                by line, a text that the findings there have to hold
    failure             line and texts of the error of a file that cannot be converted
    path                where the input lies in the repository
    form                ways to write the text into bytes, each of which is tested; in a "notebook" lines `# %%` and
                        `# %% [markdown]` begin a cell, and findings are at "cell:line"
    exclude             patterns given to the conversion
    files, mentions     files beside the input, and what the report has to name
    run                 how the programs behave, see `Behaviour`

Run as a script, this module executes the programs of a list of jobs, each in a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import runpy
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "cases"
SECONDS = 60
"""After which a program is ended."""


@dataclass(frozen=True)
class Behaviour:
    """How the programs of a case behave on a machine with nothing but a CPU."""

    before: str = ""
    """Code put before the program."""
    call: str = ""
    """Code put behind the program."""
    cpu: str | None = None
    """Pattern of what the output prints with ``AI_DEVICE=cpu``."""
    unset: str | None = None
    """Pattern of what input and output print without ``AI_DEVICE``; both must behave alike in any case."""
    compare: bool = True
    """Whether the code around the program runs with the input too."""
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By value of ``AI_DEVICE``, texts in the error that ends the output."""


@dataclass(frozen=True)
class Case:
    """One case, with its files by their place in the repository."""

    id: str
    title: str
    expected: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    findings: Sequence[str]
    choice: str = ""
    waits: str = ""
    says: Mapping[str, str] = field(default_factory=dict)
    failure: Mapping[str, object] = field(default_factory=dict)
    form: Sequence[str] = ("utf-8",)
    exclude: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    mentions: Sequence[str] = ()
    behaviour: Behaviour = field(default_factory=Behaviour)

    @property
    def is_notebook(self) -> bool:
        """Whether the input is a notebook."""
        return "notebook" in self.form


def load_case(name: str) -> Case:
    """The case of this id."""
    folder = FOLDER / name
    data = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    path = data.pop("path", "input.py")
    inputs = _texts(folder, "input", path)
    behaviour = Behaviour(**data.pop("run", {}))
    return Case(id=name, inputs=inputs, outputs=_texts(folder, "output", path) or inputs, behaviour=behaviour, **data)


def load_cases() -> list[Case]:
    """All cases by id."""
    return [load_case(path.parent.name) for path in sorted(FOLDER.glob("*/case.toml"))]


def _texts(folder: Path, kind: str, path: str) -> dict[str, str]:
    single = folder / f"{kind}.py"
    if single.is_file():
        return {path: single.read_text(encoding="utf-8")}
    return {file.name: file.read_text(encoding="utf-8") for file in sorted((folder / kind).glob("*.py"))}


def in_form(text: str, form: str) -> bytes:
    """The bytes of a text in one of the forms that cases name."""
    if form == "crlf":
        return text.replace("\n", "\r\n").encode()
    if form == "mixed":  # one line of the input keeps its own end
        lines = text.splitlines()
        return "".join(line + ("\n" if line.startswith("net = ") else "\r\n") for line in lines).encode()
    if form == "no-last-newline":
        return text.removesuffix("\n").encode()
    if form == "large":
        return text.replace("[0, 1, 2, 3]", f"[{', '.join(map(str, range(100_000)))}]").encode()
    if form == "utf-8-bom":
        return b"\xef\xbb\xbf" + text.encode()
    if form == "notebook":
        return json.dumps(notebook(text), indent=1, ensure_ascii=False).encode() + b"\n"
    return text.encode(form)


def notebook(text: str) -> dict[str, object]:
    """A notebook as Jupyter writes it, with the cells of a text."""
    kinds = ["code", *re.findall(r"^# %% ?\[?(\w*)", text, re.MULTILINE)]
    sources = re.split(r"^# %%.*\n", text, flags=re.MULTILINE)
    pairs = zip(kinds, sources, strict=True) if sources[0] else zip(kinds[1:], sources[1:], strict=True)
    cells = [_cell(number, kind or "code", source) for number, (kind, source) in enumerate(pairs)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _cell(number: int, kind: str, source: str) -> dict[str, object]:
    lines = source.removesuffix("\n").splitlines(keepends=True)
    cell: dict[str, object] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines}
    if kind == "code":
        outputs = [{"name": "stdout", "output_type": "stream", "text": ["device='cuda:0'\n"]}]
        cell = {"cell_type": kind, "execution_count": 1, "id": f"cell-{number}", "metadata": {}, "outputs": outputs}
        cell["source"] = lines
    return cell


# -- Running programs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """One program: ``<folder of all>/<case>/<kind>/<value>/program.py``; the helper lies in the folder of all."""

    folder: str
    ai_device: str | None
    """Value of the environment variable, ``None`` for unset."""


@dataclass(frozen=True)
class Result:
    """What a program printed, and the exception that ended it."""

    printed: str
    error: str


def result_of(folder: Path) -> Result:
    """What the program in a folder did."""
    printed = (folder / "printed").read_text(encoding="utf-8")
    return Result(printed, (folder / "error").read_text(encoding="utf-8"))


def _run_all(jobs: Sequence[Job]) -> None:
    """Runs each job in a fork, so that torch is imported once only."""
    import torch._dynamo  # noqa: F401 - optimizers import it when they are used, and it takes seconds

    for job in jobs:
        child = os.fork()
        if child == 0:
            os.setsid()
            signal.alarm(SECONDS)
            os._exit(_run(job))
        os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # workers that a program has left behind


def _run(job: Job) -> int:
    os.chdir(job.folder)
    Path("error").write_text("it was ended from outside", encoding="utf-8")
    printed = os.open("printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(printed, 1)
    os.environ.pop("AI_DEVICE", None)
    if job.ai_device is not None:
        os.environ["AI_DEVICE"] = job.ai_device
    sys.path.insert(0, str(Path(job.folder).parents[2]))  # where the helper lies
    sys.argv = ["program.py"]
    Path("error").write_text(_error_of(Path(job.folder, "program.py")), encoding="utf-8")
    sys.stdout.flush()
    return 0


def _error_of(program: Path) -> str:
    import torch

    random.seed(0)
    torch.manual_seed(0)
    try:
        runpy.run_path(str(program), run_name="__main__")
    except SystemExit as end:
        return f"SystemExit: {end.code}"
    except BaseException as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return ""


def _jobs(file: str) -> Iterator[Job]:
    for folder, ai_device in json.loads(Path(file).read_text(encoding="utf-8")):
        yield Job(folder, ai_device)


if __name__ == "__main__":
    _run_all(list(_jobs(sys.argv[1])))
