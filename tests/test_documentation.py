"""What the documentation says is so: its commands are run, its examples made, its links followed."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codemods.config import Config
from codemods.devices import load_devices, read_devices
from codemods.report import catalogue
from codemods.runtime import device_table

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_ABSOLUTE = re.compile(r"(?<![\w.:/*])/(?:home|root|Users|work|opt|tmp|mnt|var)/")

TRAIN = "import torch\n\nx = torch.ones(2).cuda()\n"


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    return [block for kind, block in _FENCE.findall(text_of(page)) if kind == language]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True)


def load_helper(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("documented_helper", path)
    assert spec is not None
    assert spec.loader is not None
    helper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helper)
    return helper


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    return folder


# -- docs/rules.md -------------------------------------------------------------------------------------------------


def test_the_rules_page_is_up_to_date() -> None:
    assert catalogue.main(["--check"]) == 0


def test_a_stale_rules_page_is_noticed_and_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "rules.md"
    page.write_text(text_of(catalogue.PAGE) + "\nmore\n", encoding="utf-8")
    monkeypatch.setattr(catalogue, "PAGE", page)
    assert catalogue.main(["--check"]) == 1
    assert "run python -m codemods.report.catalogue" in capsys.readouterr().out
    assert catalogue.main([]) == 0
    assert catalogue.main(["--check"]) == 0


# -- README.md -----------------------------------------------------------------------------------------------------


def test_the_example_is_what_the_tool_makes(repository: Path) -> None:
    lines = blocks(README, "diff")[0].splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    (repository / "train.py").write_text(before, encoding="utf-8")
    run(repository, "codemods", "convert", ".", "--write")
    assert (repository / "train.py").read_text(encoding="utf-8") == after


def _commands() -> Iterator[str]:
    """Every command line of the tool in the README, as in `uncuda rules`."""
    text = text_of(README)
    yield from re.findall(r"^\| `uncuda (.+?)` \|", text, re.MULTILINE)
    yield from re.findall(r"\.venv/bin/uncuda (.+)$", text, re.MULTILINE)


def test_the_commands_are_found() -> None:
    assert {command.split()[0] for command in _commands()} == {"check", "convert", "rules", "explain", "rehearse"}


@pytest.mark.parametrize("command", sorted(set(_commands())))
def test_a_command_runs(repository: Path, command: str) -> None:
    (repository / "hello.py").write_text("import torch\n\nprint(torch.ones(2).sum())\n", encoding="utf-8")
    command = command.replace("PATH...", ".").replace("path/to/repository", ".").replace("SCRIPT", "hello.py")
    words = shlex.split(command)
    done = run(repository, "codemods", *("change.patch" if word == "FILE" else word for word in words))
    assert done.returncode == (1 if words[0] in ("convert", "check") else 0), done.stderr
    assert "Traceback" not in done.stderr
    assert ((repository / "train.py").read_text(encoding="utf-8") != TRAIN) == bool({"--write", "--fix"} & {*words})
    assert (repository / "change.patch").is_file() == ("--output" in words)


def test_the_options_exist(repository: Path) -> None:
    known = "".join(run(repository, "codemods", verb, "--help").stdout for verb in ("convert", "check"))
    named = set(re.findall(r"(?<!-)--[a-z][a-z-]+", re.sub(_FENCE, "", text_of(README)))) - {"--help"}
    assert {"--select", "--write", "--tier"} <= named
    assert not [option for option in named if not re.search(rf"{option}\b(?!-)", known)]


def test_the_test_command_is_this_one() -> None:
    assert re.search(r"pip install -e '\.\[dev\]' && \.venv/bin/python -m pytest$", text_of(README), re.MULTILINE)


def test_the_settings_are_read(tmp_path: Path) -> None:
    (settings,) = blocks(README, "toml")
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    config = Config.load(tmp_path)
    unset = Config(root=tmp_path)
    fields = (
        "select", "ignore", "exclude", "tier", "tests", "graph", "per_file_ignores", "severity", "helper", "helper_name"
    )  # fmt: skip
    assert all(getattr(config, name) != getattr(unset, name) for name in fields)


def test_the_names_of_devices_are_known() -> None:
    rows = re.findall(r"^\| (`.+?) \|", text_of(README).partition("## AI_DEVICE")[2], re.MULTILINE)
    names = [set(re.findall(r"`([\w-]+)`", row)) for row in rows]
    types = {device.type for device in load_devices()}
    aliases = {alias for device in load_devices() for alias in device.aliases}
    assert types in names
    assert set().union(*names) <= aliases | {"cpu", "auto"}


@pytest.mark.parametrize("value", ["gpu0", "1", "cuda:"])
def test_a_name_that_does_not_exist_is_an_error(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    assert f"`{value}`" in text_of(README)
    monkeypatch.setenv("AI_DEVICE", value)
    with pytest.raises(RuntimeError, match=f"^AI_DEVICE={value!r} names no device"):
        load_helper(device_table.HELPER).device()


# -- docs/check.md -------------------------------------------------------------------------------------------------

CHECK = ROOT / "docs" / "check.md"


def test_the_json_of_the_check_page_is_what_the_tool_prints(repository: Path) -> None:
    done = run(repository, "codemods", "check", "--format", "json")
    assert json.loads(blocks(CHECK, "json")[0]) == json.loads(done.stdout)


def test_the_findings_of_the_check_page_are_worded_so(repository: Path) -> None:
    (repository / "train.py").write_text(f"{TRAIN}y = torch.ones(1).to(0)\n", encoding="utf-8")
    said = blocks(CHECK, "")[0]
    assert run(repository, "codemods", "check").stdout == said


def test_the_waivers_of_the_check_page_work(repository: Path) -> None:
    (waived,) = blocks(CHECK, "python")
    head = "import torch\n\nx, side = torch.ones(2), None\n"
    (repository / "train.py").write_text(head + waived, encoding="utf-8")
    assert run(repository, "codemods", "check").returncode == 0
    (repository / "train.py").write_text(head + re.sub("#.*", "", waived), encoding="utf-8")
    assert run(repository, "codemods", "check").returncode == 1


def test_the_settings_of_the_check_page_are_read(repository: Path) -> None:
    (settings,) = blocks(CHECK, "toml")
    (repository / "pyproject.toml").write_text(settings, encoding="utf-8")
    assert Config.load(repository).severity
    assert Config.load(repository).per_file_ignores
    assert run(repository, "codemods", "check").returncode == 1


def test_the_options_of_the_check_page_exist(repository: Path) -> None:
    known = "".join(run(repository, "codemods", verb, "--help").stdout for verb in ("convert", "check"))
    named = set(re.findall(r"(?<!-)--[a-z][a-z-]+", text_of(CHECK)))
    assert {"--fix", "--diff", "--stdin-filename"} <= named
    assert not [option for option in named if not re.search(rf"{option}\b(?!-)", known)]


# -- docs/helper.md ------------------------------------------------------------------------------------------------


def _names_in_helper_page() -> set[str]:
    """The names in the first column of the tables, and those in the lists."""
    page = text_of(ROOT / "docs" / "helper.md")
    columns = re.findall(r"^\| (.+?) \|", page, re.MULTILINE)
    lists = re.findall(r"^(?:- [a-z ]+:|  )(.+)$", page, re.MULTILINE)
    return {name for part in (*columns, *lists) for name in re.findall(r"`(\w+)", part)}


def test_the_helper_page_names_every_public_name() -> None:
    tree = ast.parse(device_table.HELPER.read_text(encoding="utf-8"))
    public = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    public |= {
        t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
    }
    assert {name for name in public if not name.startswith("_")} <= _names_in_helper_page()


def test_the_helper_page_names_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AI_DEVICE", raising=False)
    helper = load_helper(device_table.HELPER)
    assert not [name for name in sorted(_names_in_helper_page()) if not hasattr(helper, name)]


# -- docs/adding-a-rule.md and docs/adding-a-vendor.md -------------------------------------------------------------


def test_the_rule_of_the_guide_works(tmp_path: Path) -> None:
    page = ROOT / "docs" / "adding-a-rule.md"
    (entry,), (method,) = blocks(page, "toml"), blocks(page, "python")
    shutil.copytree(ROOT / "codemods", tmp_path / "codemods", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "rules", tmp_path / "codemods" / "rules", ignore=shutil.ignore_patterns("__pycache__"))
    (name,) = re.findall(r"`rules/catalogue/(\w+\.toml)`", text_of(page))
    (tmp_path / "codemods" / "rules" / "catalogue" / name).write_text(entry, encoding="utf-8")
    codemod = tmp_path / "codemods" / "transformers" / "cuda_only.py"
    source = codemod.read_text(encoding="utf-8")
    assert "def leave_Arg(" not in source
    first = "    def leave_SimpleString("
    codemod.write_text(source.replace(first, f"{method}\n{first}", 1), encoding="utf-8")
    backends = "".join(f'torch.compile(f, backend="{name}")\n' for name in ("inductor", "cudagraphs"))
    (tmp_path / "train.py").write_text(f"import torch\n\n{backends}", encoding="utf-8")
    done = run(tmp_path, "codemods", "convert", "train.py")
    assert done.returncode == 1
    assert re.findall(r"^train\.py:(\d+):\d+ (UC\d+) manual", done.stderr, re.MULTILINE) == [("4", "UC625")]
    assert run(tmp_path, "codemods", "explain", "UC625").stdout.startswith("# UC625 compile-backend\n")


def test_the_vendor_of_the_guide_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "adding-a-vendor.md"
    shutil.copytree(ROOT / "rules" / "devices", tmp_path / "devices")
    (entry,) = blocks(page, "toml")
    (tmp_path / "devices" / "acme.toml").write_text(entry, encoding="utf-8")
    table = device_table.render(read_devices(tmp_path / "devices"))
    helper = tmp_path / "ai_device.py"
    source = device_table.HELPER.read_text(encoding="utf-8")
    helper.write_text(device_table.replace_table(source, table), encoding="utf-8")
    monkeypatch.setenv("AI_DEVICE", "widget")
    with pytest.raises(RuntimeError) as caught:
        load_helper(helper).device()
    (quoted,) = re.findall(r"^```\nRuntimeError: (.*?)\n```$", text_of(page), re.MULTILINE | re.DOTALL)
    # Which devices are found depends on the machine.
    assert str(caught.value).startswith(quoted.replace("\n", " ").partition("Found here")[0])


# -- All pages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    for target in _LINK.findall(re.sub(_FENCE, "", text_of(page))):
        if target.startswith("https://"):
            continue
        place, _, anchor = target.partition("#")
        linked = page.parent / place if place else page
        assert linked.exists(), target
        assert not anchor or anchor in _anchors(linked), target


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", re.sub(_FENCE, "", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_files_that_the_guides_name_exist() -> None:
    examples = {"rules/catalogue/uc625_compile_backend.toml", "rules/devices/acme.toml"}
    pages = [page for page in PAGES if page.name != "rules.md"]
    named = {
        name for page in pages for name in re.findall(r"`((?:codemods|rules|tests|docs)/[\w./-]+)`", text_of(page))
    }
    assert named >= examples
    assert not [name for name in sorted(named - examples) if not (ROOT / name).exists()]


def test_the_folders_are_those_of_the_architecture_page() -> None:
    page = text_of(ROOT / "docs" / "architecture.md")
    folders = {path.parent.name for path in (ROOT / "codemods").glob("*/__init__.py")} - {"rules"}
    assert set(re.findall(r"^    (\w+)/ ", page, re.MULTILINE)) == folders | {
        "catalogue",
        "devices",
        "operators",
        "namespaces",
    }


def test_no_absolute_paths() -> None:
    files = [*PAGES, ROOT / ".ci" / "run"]
    for folder in ("benchmarks", "codemods", "rules"):
        files += [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".py", ".toml")]
    assert not [str(file.relative_to(ROOT)) for file in files if _ABSOLUTE.search(file.read_text(encoding="utf-8"))]
