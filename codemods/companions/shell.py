"""Launch scripts, and shell text in other files: cells of notebooks, steps of CI, lines of a Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from codemods import vendor_text
from codemods.companions.images import image_remark
from codemods.companions.packages import package_remark
from codemods.companions.remarks import NOTHING_KNOWN, Knowledge, Remark
from codemods.companions.settings import argument_remark
from codemods.companions.shell_words import Command, HereDocument, Word, commands
from codemods.companions.variables import variable_remark
from codemods.companions.vocabulary import load_vocabulary

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=")
_KEYWORDS = frozenset(("!", "{", "}", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "time"))
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?\Z", re.DOTALL)
_OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z_][\w./@-]*)=(.*)\Z", re.DOTALL)
_FLAG_IN_TEXT = re.compile(r"(?<![^\s=])--?([A-Za-z][\w.-]*)(?:=|\s+)(\S+)")
_NAMES_CUDA = re.compile(r"\.cuda\s*\(|\btorch\.cuda\b|([\"'])(?:cuda(?::\d+)?|nccl)\1|--\w*device[= ]cuda\b")
_SCHEDULER = re.compile(
    r"""^[ \t]*\#(?:SBATCH|PBS|BSUB|\$)[ \t]+[^\n]*?
    ((?:--gres|--gpus|--gpus-per-\w+|-G|-gpu)[= ]*\S*(?:gpu|\d)\S*|\bn?gpus?=\d\S*)""",
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)
_SCHEDULER_OPTION = re.compile(r"--gres=\S*gpu|--gpus(?:-per-\w+)?(?:=|\Z)", re.IGNORECASE)
_CONTAINER_GPUS = re.compile(r"--gpus(?:=.*)?\Z|--runtime=nvidia\Z|--nv\Z|--device=nvidia\.com/gpu.*", re.DOTALL)
_CUDA_MODULE = re.compile(r"(?:[\w.-]+/)*(?:cuda|cudnn|nccl)(?:toolkit|-toolkit)?(?:[/-].*)?\Z", re.IGNORECASE)
_OWN_FILES = (".py", ".sh", ".bash")

Locate = Callable[[int], int]


def shell_remarks(text: str, base: int = 0, known: Knowledge = NOTHING_KNOWN) -> Iterator[Remark]:
    """What the rules say of a piece of shell.

    Args:
        text: one or more lines
        base: where it begins in the text that the remarks' places refer to
        known: what the repository's Python says
    """
    for match in _SCHEDULER.finditer(text):
        yield Remark(base + match.start(1), base + match.end(1), "UC717")
    yield from _Script(known, lambda index: base + index).remarks(commands(text))


def command_remarks(words: Sequence[Word], known: Knowledge = NOTHING_KNOWN) -> Iterator[Remark]:
    """The same for one command that is given by its words, as in ``CMD ["python", "train.py"]``."""
    yield from _Script(known, lambda index: index).remarks([Command(list(words))])


class _Script:
    """Judges the commands of one text; ``locate`` tells where a place in it is in the file."""

    def __init__(self, known: Knowledge, locate: Locate) -> None:
        self._known = known
        self._locate = locate
        self._starts_python = False

    def remarks(self, script: Sequence[Command]) -> Iterator[Remark]:
        self._starts_python = any(_role_of(_without_keywords(command.words)) == "launcher" for command in script)
        for command in script:
            if not command.is_array:
                yield from self._command(_without_keywords(command.words), command.here)
            elif self._starts_python:
                yield from self._arguments(command.words)

    def _command(self, words: Sequence[Word], here: Sequence[HereDocument]) -> Iterator[Remark]:
        found = _program(words)
        if found is None:
            yield from self._assignments(words, maps_mask=True)
            yield from self._options_in(words)
            yield from self._nested((), here)  # `RUN <<EOF` of a Dockerfile
            return
        role = _role(words[found])
        yield from self._asked_of_a_scheduler(words)
        if role == "wrapper":
            yield from self._nested(words[found + 1 :], ())  # `ssh host "..."`, `screen -X stuff "..."`
        if role == "declaration":
            yield from self._assignments(words, maps_mask=True)
            yield from self._options_in(words)
        else:
            yield from self._assignments(words[:found], maps_mask=self._may_be_own(role, words[found:]))
            yield from self._started(role, words[found], words[found + 1 :], here)

    def _asked_of_a_scheduler(self, words: Sequence[Word]) -> Iterator[Remark]:
        """``srun --gres=gpu:8 ...``"""
        if any(word.text in load_vocabulary().schedulers for word in words):
            asked = (word for word in words if _SCHEDULER_OPTION.match(word.text))
            yield from (Remark(*self._span(word), "UC717") for word in asked)

    # -- programs ------------------------------------------------------------------------------------------------------

    def _started(
        self, role: str, program: Word, arguments: Sequence[Word], here: Sequence[HereDocument]
    ) -> Iterator[Remark]:
        if role == "launcher":
            yield from self._python(arguments, here)
        elif role == "tool":
            yield Remark(*self._span(program), "UC715", _tool(program.text))
        elif role == "installer":
            yield from self._installed(arguments)
        elif role == "container":
            yield from self._container(program, arguments)
        elif role == "shell":
            yield from self._nested(arguments, here)
        elif role == "modules":
            loaded = (word for word in arguments if _CUDA_MODULE.match(word.text))
            yield from (Remark(*self._span(word), "UC718", word.text) for word in loaded)

    def _python(self, arguments: Sequence[Word], here: Sequence[HereDocument]) -> Iterator[Remark]:
        texts = [word.text for word in arguments]
        if texts[:2] == ["-m", "pip"]:
            yield from self._installed(arguments[2:])
        elif "-c" in texts[:-1]:
            code = arguments[texts.index("-c") + 1]
            yield from self._code(code.text, code.place)
        else:
            for document in here:
                yield from self._code(document.text, document.place)
            yield from self._arguments(arguments)

    def _code(self, code: str, place: Locate) -> Iterator[Remark]:
        match = _NAMES_CUDA.search(code)
        if match:
            yield Remark(self._locate(place(match.start())), self._locate(place(match.end() - 1)) + 1, "UC719")

    def _arguments(self, words: Sequence[Word]) -> Iterator[Remark]:
        for number, word in enumerate(words):
            following, last = words[number + 1] if number + 1 < len(words) else None, word
            if match := _FLAG.match(word.text):
                if match[2] is None and following is not None and not following.text.startswith("-"):
                    last = following
                value = match[2] if last is word else last.text
            elif match := _OVERRIDE.match(word.text):
                value = match[2]
            else:
                continue
            path = match[1].replace("/", ".").split(".")
            yield from _given(argument_remark(path, value or "", *self._span(word, last), self._known))

    def _installed(self, arguments: Sequence[Word]) -> Iterator[Remark]:
        verb = next((word.text for word in arguments if not word.text.startswith("-")), "")
        if verb in load_vocabulary().not_installing:
            return
        for word in arguments:
            requirement = word.text.partition("=")[2] if word.text.startswith("-") else word.text
            yield from _given(package_remark(requirement, *self._span(word), self._known))

    def _container(self, program: Word, arguments: Sequence[Word]) -> Iterator[Remark]:
        if program.text.endswith("nvidia-docker"):
            yield Remark(*self._span(program), "UC716")
        yield from self._assignments(arguments, maps_mask=True)
        for before, word in zip([program, *arguments], arguments, strict=False):
            if _CONTAINER_GPUS.match(word.text) or (before.text, word.text) == ("--runtime", "nvidia"):
                yield Remark(*self._span(word), "UC716")
            else:
                yield from _given(image_remark(word.text, *self._span(word)))
        inside = next((number for number, word in enumerate(arguments) if _role(word) == "launcher"), None)
        if inside is not None:
            yield from self._python(arguments[inside + 1 :], ())

    def _nested(self, arguments: Sequence[Word], here: Sequence[HereDocument]) -> Iterator[Remark]:
        """``bash -c "..."``, ``sbatch --wrap="..."`` and a script in a here-document."""
        for word in arguments:
            begin = word.text.index("=") + 1 if word.text.startswith("--wrap=") else 0
            if re.search(r"\s", word.text):
                yield from self._inner(word.text[begin:], word.place, begin)
        for document in here:
            yield from self._inner(document.text, document.place, 0)

    def _inner(self, text: str, place: Locate, begin: int) -> Iterator[Remark]:
        return _Script(self._known, lambda index: self._locate(place(begin + index))).remarks(commands(text))

    # -- assignments ---------------------------------------------------------------------------------------------------

    def _assignments(self, words: Sequence[Word], *, maps_mask: bool) -> Iterator[Remark]:
        for number, word in enumerate(words):
            name, value, last = "", "", word
            if match := _ASSIGNMENT.match(word.text):
                name, value = match[1], word.text[match.end() :]
            elif number and words[number - 1].text == "setenv" and number + 1 < len(words):
                name, value, last = word.text, words[number + 1].text, words[number + 1]
            if name:
                expands = word.expands or last.expands
                remark = variable_remark(name, value, *self._span(word, last), expands=expands, maps_mask=maps_mask)
                yield from _given(remark)

    def _options_in(self, words: Sequence[Word]) -> Iterator[Remark]:
        """``OPTIONS="--device cuda --epochs 3"``, in a script that starts Python."""
        for word in words if self._starts_python else ():
            for match in _FLAG_IN_TEXT.finditer(word.text) if _ASSIGNMENT.match(word.text) else ():
                start, end = (self._locate(word.place(at)) for at in (match.start(), match.end() - 1))
                yield from _given(argument_remark(match[1].split("."), match[2], start, end + 1, self._known))

    # -- what is asked -------------------------------------------------------------------------------------------------

    def _may_be_own(self, role: str, words: Sequence[Word]) -> bool:
        """Whether a command may start a program of the repository, as far as its words tell."""
        texts = [word.text for word in words]
        if role == "launcher":
            modules = (after for before, after in pairwise(texts) if before == "-m")
            program = next((name for name in modules if name not in load_vocabulary().running_modules), None)
            return program is None or program.partition(".")[0] in self._known.modules
        if role in ("", "wrapper"):
            return any(
                word.expands or word.text in self._known.commands or word.text.endswith(_OWN_FILES) for word in words
            )
        return role in ("shell", "container")

    def _span(self, word: Word, last: Word | None = None) -> tuple[int, int]:
        return self._locate(word.start), self._locate((last or word).end - 1) + 1


def _given(remark: Remark | None) -> Iterable[Remark]:
    return () if remark is None else (remark,)


def _without_keywords(words: Sequence[Word]) -> Sequence[Word]:
    start = next((number for number, word in enumerate(words) if word.text not in _KEYWORDS), len(words))
    return words[start:]


def _program(words: Sequence[Word]) -> int | None:
    """Which word is the program: the first behind assignments, or behind a wrapper the first that is known."""
    first = next((number for number, word in enumerate(words) if not _ASSIGNMENT.match(word.text)), None)
    if first is None or not _is_wrapper(words[first:]):
        return first
    later = range(first + 1, len(words))
    return next((number for number in later if _role(words[number]) not in ("", "wrapper")), first)


def _role_of(words: Sequence[Word]) -> str:
    """What the program of a command is; empty if that is not known."""
    found = _program(words)
    return _role(words[found]) if found is not None else ""


def _role(word: Word) -> str:
    """What a word is, if it is the program: a script of Python is taken for what starts it."""
    if re.search(r"\s", word.text):
        return ""  # a text, which only happens to begin or end like a program
    return "launcher" if word.text.endswith(".py") else load_vocabulary().role(word.text)


def _is_wrapper(words: Sequence[Word]) -> bool:
    """Whether a command starts another one: ``srun``, ``env``, also ``conda run`` and ``$PYTHON``."""
    role = _role(words[0])
    if role == "":
        return words[0].expands
    return role == "wrapper" or (role == "installer" and len(words) > 1 and words[1].text == "run")


def _tool(name: str) -> str:
    name = name.rpartition("/")[2]
    use = load_vocabulary().tools[name]
    return f"elsewhere {vendor_text.monitors()}" if use == "monitor" else f"it is NVIDIA's {use}"
