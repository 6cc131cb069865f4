"""Launch scripts, and shell text in other files: cells of notebooks, steps of CI, lines of a Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from codemods import vendor_text
from codemods.companions.images import image_remark
from codemods.companions.packages import package_remark
from codemods.companions.remarks import NOTHING_KNOWN, Knowledge, Remark
from codemods.companions.settings import argument_remark
from codemods.companions.shell_words import Command, HereDocument, Word, commands
from codemods.companions.variables import variable_remark
from codemods.companions.vocabulary import load_vocabulary

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=")
_KEYWORDS = frozenset(("!", "{", "}", "(", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "time"))
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?\Z", re.DOTALL)
_OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z_][\w./@-]*)=(.*)\Z", re.DOTALL)
_FLAG_IN_TEXT = re.compile(r"(?<!\S)--?([A-Za-z][\w.-]*)(?:=|\s+)(\S+)")
_PYTHON = re.compile(r"\.cuda\s*\(|\btorch\.cuda\b|([\"'])(?:cuda(?::\d+)?|nccl)\1")
_SCHEDULER = re.compile(
    r"^[ \t]*#(?:SBATCH|PBS|BSUB|\$)[ \t]+[^\n]*?((?:--gres|--gpus|--gpus-per-\w+|-G|-gpu)[= ]*\S*(?:gpu|\d)\S*|\bn?gpus?=\d\S*)",
    re.MULTILINE | re.IGNORECASE,
)
_DISTRIBUTED = ("torch.distributed.launch", "torch.distributed.run", "accelerate.commands.launch", "deepspeed")
_CONTAINER_GPUS = re.compile(r"--gpus(?:=.*)?\Z|--runtime=nvidia\Z|--nv\Z|--device=nvidia\.com/gpu.*", re.DOTALL)
_CUDA_MODULE = re.compile(r"(?:[\w.-]+/)*(?:cuda|cudnn|nccl)(?:toolkit|-toolkit)?(?:[/-].*)?\Z", re.IGNORECASE)

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
    """Judges the commands of one text."""

    def __init__(self, known: Knowledge, locate: Locate) -> None:
        self._known = known
        self._locate = locate
        self._starts_python = False

    def remarks(self, script: Sequence[Command]) -> Iterator[Remark]:
        self._starts_python = any(self._launches(command) for command in script)
        for command in script:
            if command.is_array:
                if self._starts_python:
                    yield from self._arguments(command.words)
            else:
                yield from self._command(_without_keywords(command.words), command.here)

    def _launches(self, command: Command) -> bool:
        words = _without_keywords(command.words)
        found = _program(words)
        return found is not None and load_vocabulary().role(words[found].text) == "launcher"

    def _command(self, words: Sequence[Word], here: Sequence[HereDocument]) -> Iterator[Remark]:
        found = _program(words)
        if found is None:
            yield from self._assignments(words, is_prefix=False)
            yield from self._nested((), here)  # `RUN <<EOF` of a Dockerfile
            return
        role = load_vocabulary().role(words[found].text)
        maps_mask = role in ("", "launcher", "shell", "container") and self._is_own(role, words[found:])
        before = words[:found] if role != "declaration" else words
        yield from self._assignments(before, maps_mask=maps_mask or role == "declaration", is_prefix=True)
        yield from self._program(role, words[found], words[found + 1 :], here)

    # -- programs ------------------------------------------------------------------------------------------------------

    def _program(
        self, role: str, program: Word, arguments: Sequence[Word], here: Sequence[HereDocument]
    ) -> Iterator[Remark]:
        if role == "launcher":
            yield from self._launch(program, arguments, here)
        elif role == "tool":
            yield self._remark(program, "UC715", _tool(program.text))
        elif role == "installer":
            yield from self._installed(arguments)
        elif role == "container":
            yield from self._container(program, arguments)
        elif role == "shell":
            yield from self._nested(arguments, here)
        elif role == "modules":
            yield from (self._remark(word, "UC718", word.text) for word in arguments if _CUDA_MODULE.match(word.text))

    def _launch(self, program: Word, arguments: Sequence[Word], here: Sequence[HereDocument]) -> Iterator[Remark]:
        texts = [word.text for word in arguments]
        if texts[:2] == ["-m", "pip"]:
            yield from self._installed(arguments[2:])
            return
        if "-c" in texts[:-1]:
            yield from self._inline(arguments[texts.index("-c") + 1])
            return
        for document in here:
            yield from self._python(document.text, lambda index, at=document.start: at + index)  # type: ignore[misc]
        yield from self._arguments(arguments)

    def _inline(self, word: Word) -> Iterator[Remark]:
        return self._python(word.text, word.place)

    def _python(self, code: str, place: Locate) -> Iterator[Remark]:
        match = _PYTHON.search(code)
        if match:
            yield Remark(self._locate(place(match.start())), self._locate(place(match.end() - 1)) + 1, "UC719")

    def _arguments(self, words: Sequence[Word]) -> Iterator[Remark]:
        for number, word in enumerate(words):
            following = words[number + 1] if number + 1 < len(words) else None
            if match := _FLAG.match(word.text):
                value, last = match[2], word
                if value is None:
                    taken = following if following is not None and not following.text.startswith("-") else None
                    value, last = (taken.text, taken) if taken is not None else ("", word)
            elif match := _OVERRIDE.match(word.text):
                value, last = match[2], word
            else:
                continue
            path = match[1].replace("/", ".").split(".")
            remark = argument_remark(path, value, self._locate(word.start), self._locate(last.end - 1) + 1, self._known)
            if remark is not None:
                yield remark

    def _container(self, program: Word, arguments: Sequence[Word]) -> Iterator[Remark]:
        if program.text.endswith("nvidia-docker"):
            yield self._remark(program, "UC716")
        for number, word in enumerate(arguments):
            before = arguments[number - 1].text if number else ""
            if _CONTAINER_GPUS.match(word.text) or (before, word.text) == ("--runtime", "nvidia"):
                yield self._remark(word, "UC716")
            elif match := _ASSIGNMENT.match(word.text):
                yield from self._assignment(word, match, maps_mask=True)
            elif image := image_remark(word.text, self._locate(word.start), self._locate(word.end - 1) + 1):
                yield image
        inside = next((n for n, word in enumerate(arguments) if load_vocabulary().role(word.text) == "launcher"), None)
        if inside is not None:
            yield from self._launch(arguments[inside], arguments[inside + 1 :], ())

    def _installed(self, arguments: Sequence[Word]) -> Iterator[Remark]:
        for word in arguments:
            if word.text.startswith("-") and "=" not in word.text:
                continue
            text = word.text.partition("=")[2] if word.text.startswith("-") else word.text
            remark = package_remark(text, self._locate(word.start), self._locate(word.end - 1) + 1, self._known)
            if remark is not None:
                yield remark

    def _nested(self, arguments: Sequence[Word], here: Sequence[HereDocument]) -> Iterator[Remark]:
        """``bash -c "..."``, ``sbatch --wrap "..."`` and a script in a here-document."""
        for word in arguments:
            begin = word.text.index("=") + 1 if word.text.startswith("--wrap=") else 0
            text = word.text[begin:]
            if re.search(r"\s", text):
                inner = _Script(self._known, lambda index, w=word, b=begin: self._locate(w.place(b + index)))  # type: ignore[misc]
                yield from inner.remarks(commands(text))
        for document in here:
            inner = _Script(self._known, lambda index, d=document: self._locate(d.start + index))  # type: ignore[misc]
            yield from inner.remarks(commands(document.text))

    # -- assignments ---------------------------------------------------------------------------------------------------

    def _assignments(self, words: Sequence[Word], *, is_prefix: bool, maps_mask: bool = True) -> Iterator[Remark]:
        for number, word in enumerate(words):
            if match := _ASSIGNMENT.match(word.text):
                yield from self._assignment(word, match, maps_mask)
                if not is_prefix and self._starts_python:
                    yield from self._flags_in(word, match.end())
            elif number and words[number - 1].text == "setenv" and number + 1 < len(words):
                value = words[number + 1]
                remark = variable_remark(
                    word.text, value.text, self._locate(word.start), self._locate(value.end - 1) + 1, expands=value.expands
                )
                if remark is not None:
                    yield remark

    def _assignment(self, word: Word, match: re.Match[str], maps_mask: bool) -> Iterator[Remark]:
        remark = variable_remark(
            match[1],
            word.text[match.end() :],
            self._locate(word.start),
            self._locate(word.end - 1) + 1,
            expands=word.expands,
            maps_mask=maps_mask,
        )
        if remark is not None:
            yield remark

    def _flags_in(self, word: Word, begin: int) -> Iterator[Remark]:
        """``OPTIONS="--device cuda --epochs 3"``, in a script that starts Python."""
        for match in _FLAG_IN_TEXT.finditer(word.text, begin):
            places = [self._locate(word.place(at)) for at in (match.start(), match.end() - 1)]
            remark = argument_remark(match[1].split("."), match[2], places[0], places[1] + 1, self._known)
            if remark is not None:
                yield remark

    # -- what is asked -------------------------------------------------------------------------------------------------

    def _is_own(self, role: str, words: Sequence[Word]) -> bool:
        """Whether a command may start a program of the repository, as far as its words tell."""
        texts = [word.text for word in words]
        if role == "":
            return texts[0] in self._known.commands or texts[0].endswith((".sh", ".bash", ".py")) or words[0].expands
        for number, text in enumerate(texts[:-1]):
            if text == "-m" and texts[number + 1] not in _DISTRIBUTED:
                return texts[number + 1].partition(".")[0] in self._known.modules
        return True

    def _remark(self, word: Word, rule: str, detail: str = "") -> Remark:
        return Remark(self._locate(word.start), self._locate(word.end - 1) + 1, rule, detail)


def _without_keywords(words: Sequence[Word]) -> Sequence[Word]:
    start = next((number for number, word in enumerate(words) if word.text not in _KEYWORDS), len(words))
    return words[start:]


def _program(words: Sequence[Word]) -> int | None:
    """Which word is the program: the first behind assignments, or behind a wrapper the first that is known."""
    role_of = load_vocabulary().role
    first = next((number for number, word in enumerate(words) if not _ASSIGNMENT.match(word.text)), None)
    if first is None or role_of(words[first].text) != "wrapper":
        return first
    later = range(first + 1, len(words))
    return next((number for number in later if role_of(words[number].text) not in ("", "wrapper")), first)


def _tool(name: str) -> str:
    name = name.rpartition("/")[2]
    use = load_vocabulary().tools[name]
    return vendor_text.monitors() if use == "monitor" else f"NVIDIA's {use}"
