"""What the verbs that convert share: the request of a command line, and how a mistake of the user ends it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from codemods.config import Config, check_codes, check_helper
from codemods.engine.outcome import Progress, Request
from codemods.errors import UserError
from codemods.findings import Tier

Result = TypeVar("Result")


def request_of(
    paths: tuple[Path, ...],
    config: Config,
    options: Mapping[str, Any],
    tier: Tier,
    unsaved: Mapping[Path, bytes] | None = None,
) -> Request:
    """The request of a command line, with the project's settings where the command line is silent.

    Raises:
        ConfigError: an option or a setting has a value that cannot be used
    """
    check_helper(options["helper"], options["helper_name"])
    extend = codes(options.get("extend_select", ()))
    select = codes(options["select"]) or config.select
    ignored = tuple(code for code in config.ignore if not (extend and code.startswith(extend)))
    ignore = codes(options["ignore"]) + ignored
    of_settings = [code for _, listed in config.per_file_ignores for code in listed]
    of_settings += [code for code, _ in config.severity]
    if select or ignore or extend or of_settings:
        check_codes(*select, *ignore, *extend, *of_settings)
    return Request(
        paths=tuple(map(absolute, paths)),
        exclude=(*config.exclude, *options["exclude"]),
        exclude_root=config.root,
        tier=tier,
        select=select + extend if select else (),
        ignore=ignore,
        families=frozenset(name for name in ("tests", "graph") if options.get(name) or getattr(config, name)),
        per_file_ignores=config.per_file_ignores,
        helper=options["helper"] or config.helper,
        helper_name=options["helper_name"] or config.helper_name,
        unsaved=unsaved or {},
        jobs=options["jobs"],
        cache=not options["no_cache"] and not unsaved,
        cache_dir=options["cache_dir"],
    )


def absolute(path: Path) -> Path:
    """The path without ``..``, which would otherwise stand in the patch; a link that is named stays one."""
    if ".." not in path.parts:
        return path.absolute()
    return path.resolve() if path.name == ".." else path.parent.resolve() / path.name


def codes(values: tuple[str, ...]) -> tuple[str, ...]:
    """Codes of rules as they are given: in any case, and several in one value."""
    return tuple(code.strip().upper() for value in values for code in value.split(",") if code.strip())


def with_progress(title: str, work: Callable[[Progress | None], Result]) -> Result:
    """Does some work, with a bar on standard error if that is a terminal and there is anything to count."""
    if not sys.stderr.isatty():
        return work(None)
    with ExitStack() as stack:
        bar: Progress | None = None

        def progress(done: int, total: int) -> None:
            nonlocal bar
            if bar is None:
                from codemods.report.terminal import progress_bar

                bar = stack.enter_context(progress_bar(title))
            bar(done, total)

        return work(progress)


def fail(error: UserError) -> NoReturn:
    """Ends the command with what the user has to mend."""
    click.echo(f"uncuda: {error}", err=True)
    sys.exit(2)


def print_patch(patch: bytes) -> None:
    """Prints a patch: in colour on a terminal, byte for byte elsewhere."""
    if sys.stdout.isatty():
        from codemods.report.terminal import print_patch

        print_patch(patch)
    else:
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
