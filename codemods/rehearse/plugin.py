"""pytest on a virtual accelerator: ``pytest --uncuda-device npu``.

The backend is there before any test or ``conftest.py`` is imported, and in the processes that tests start. What it saw
is summed up at the end; the exit code is that of the tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_FOLDER = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("uncuda", "rehearsal on a virtual accelerator")
    group.addoption("--uncuda-device", metavar="NAME", help="run the tests on a virtual accelerator, e.g. npu or mlu")
    group.addoption("--uncuda-adapter-version", metavar="V", help="version of the vendor's adapter (the newest known)")
    group.addoption("--uncuda-count", type=int, default=2, metavar="N", help="virtual devices (2)")
    group.addoption("--uncuda-strict", action="store_true", help="an operator without a kernel is an error")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Joins the rehearsal before anything of the project is imported."""
    if early_config.known_args_namespace.uncuda_device is None:
        return
    from codemods.errors import UserError
    from codemods.rehearse import process

    try:
        if process.VARIABLE not in os.environ:  # a worker of a distributed run joins the rehearsal that started it
            _begin(early_config)
        process.join()
    except UserError as error:
        raise pytest.UsageError(f"--uncuda-device: {error}") from None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says what the backend saw."""
    if _FOLDER not in config.stash:
        return
    from codemods.rehearse import launch, process, report_build, report_text
    from codemods.rehearse.report_tables import tables

    process.leave_record()
    name = config.known_args_namespace.uncuda_device
    request = launch.Request("pytest", device=name, adapter_version=config.known_args_namespace.uncuda_adapter_version)
    run = launch.Run(request, main_pids=[os.getpid()], records=launch.read_records(Path(config.stash[_FOLDER])))
    report = report_build.build(run, config.rootpath)
    terminalreporter.section(f"rehearsal on a virtual {report.device} ({report.title})")
    for table in tables(report):
        for line in report_text.table_lines(table):
            terminalreporter.write_line(line)
    terminalreporter.write_line(report.provenance)


def _begin(config: pytest.Config) -> None:
    """Prepares the environment for this process and those that tests start."""
    from codemods.rehearse import launch, process

    options = config.known_args_namespace
    launch.check_torch()
    device = launch.rehearsable(options.uncuda_device)
    folder = TemporaryDirectory(prefix="uncuda-rehearsal-")
    config.stash[_FOLDER] = folder.name
    config.add_cleanup(folder.cleanup)
    config.add_cleanup(_restorer(dict(os.environ)))
    settings = process.Settings(
        folder=folder.name,
        device=device.type,
        name=options.uncuda_device,
        adapter_version=options.uncuda_adapter_version,
        count=options.uncuda_count,
        strict=options.uncuda_strict,
    )
    os.environ.update(launch.environment(settings))


def _restorer(before: dict[str, str]) -> Callable[[], None]:
    """A function that gives the environment the variables that it had."""

    def restore() -> None:
        os.environ.clear()
        os.environ.update(before)

    return restore
