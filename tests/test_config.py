from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codemods.config import Config, ConfigError


def settings(folder: Path, *lines: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text("\n".join(("[tool.uncuda]", *lines)), encoding="utf-8")


def message(folder: Path, *lines: str) -> str:
    settings(folder, *lines)
    with pytest.raises(ConfigError) as caught:
        Config.load(folder)
    return str(caught.value)


def test_what_holds_where_nothing_is_set(tmp_path: Path) -> None:
    assert Config.load(tmp_path) == Config()
    assert Config() == Config((), (), (), "review", None, "ai_device", None)


def test_all_keys(tmp_path: Path) -> None:
    settings(
        tmp_path,
        'select = ["UC1"]',
        'ignore = ["UC104"]',
        'exclude = ["third_party/", "*_pb2.py"]',
        'tier = "safe"',
        'helper = "pkg.device"',
        'helper-name = "dev"',
        'per-file-ignores = {"tests/" = ["UC8", "uc503"]}',
        'severity = {UC204 = "warning", uc9 = "info"}',
    )
    assert Config.load(tmp_path) == Config(
        select=("UC1",),
        ignore=("UC104",),
        exclude=("third_party/", "*_pb2.py"),
        tier="safe",
        helper="pkg.device",
        helper_name="dev",
        root=tmp_path,
        per_file_ignores=(("tests/", ("UC8", "UC503")),),
        severity=(("UC204", "warning"), ("UC9", "info")),
    )


def test_the_nearest_table_counts(tmp_path: Path) -> None:
    settings(tmp_path, 'helper-name = "outer"')
    settings(tmp_path / "a", 'helper-name = "inner"')
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "pyproject.toml").write_text("[tool.black]\nline-length = 100  # not uncuda's\n")
    (tmp_path / "a" / "b" / "c" / "net.py").touch()
    assert Config.load(tmp_path / "a" / "b" / "c" / "net.py").helper_name == "inner"
    assert Config.load(tmp_path / "a" / "b" / "no.py").root == tmp_path / "a"
    assert Config.load(tmp_path).helper_name == "outer"


def test_the_search_ends_at_the_repository(tmp_path: Path) -> None:
    settings(tmp_path, 'helper-name = "outer"')
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    assert Config.load(tmp_path / "repo") == Config()


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(tmp_path, 'tier = "safe"')
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    assert Config.load(Path("net.py")).tier == "safe"


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('selct = ["UC1"]', "has no key `selct`; did you mean `select`?"),
        ("wombat = 1", "has no key `wombat`; it takes select, ignore,"),
        ('select = "UC1"', "`select` must be a list of strings, not 'UC1'"),
        ("exclude = [1]", "`exclude` must be a list of strings, not [1]"),
        ('tier = "save"', "`tier` must be 'safe' or 'review', not 'save'; did you mean 'safe'?"),
        ('tier = ["safe"]', "`tier` must be 'safe' or 'review', not ['safe']"),
        ('helper = "pkg/device.py"', '`helper` must be the dotted name of a module such as "pkg.device"'),
        ('severity = {UC1 = "fatal"}', "`severity` takes 'error', 'warning', 'info', not 'fatal'"),
        ('severity = {UC1 = "eror"}', "not 'eror'; did you mean 'error'?"),
        ('severity = "error"', "`severity` must be a table such as {UC204 = \"warning\"}, not 'error'"),
        ('per-file-ignores = ["tests/*"]', "`per-file-ignores` must be a table such as"),
        ('per-file-ignores = {"tests/*" = "UC8"}', "`per-file-ignores` must be a list of strings, not 'UC8'"),
        ("helper = true", "`helper` must be the dotted name of a module"),
        ('helper-name = "ai-device"', "`helper-name` must be a name that can be imported"),
        ('helper-name = "class"', "`helper-name` must be a name that can be imported"),
        ('helper-name = "a.b"', "`helper-name` must be a name that can be imported"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, line: str, part: str) -> None:
    text = message(tmp_path, line)
    assert text.startswith(f"{tmp_path / 'pyproject.toml'}: [tool.uncuda] ")
    assert part in text
    assert "\n" not in text


def test_broken_files(tmp_path: Path) -> None:
    assert "not valid TOML" in message(tmp_path, "select = [")
    file = tmp_path / "pyproject.toml"
    file.write_bytes("[tool.uncuda]\n# é".encode("latin-1"))
    with pytest.raises(ConfigError, match="not valid TOML"):
        Config.load(tmp_path)
    file.write_text("[tool]\nuncuda = 3\n")
    with pytest.raises(ConfigError, match=r"`tool\.uncuda` must be a table"):
        Config.load(tmp_path)


def test_other_spellings_of_the_table(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    for text in ('[ tool . "uncuda" ]\ntier = "safe"\n', '[tool]\nuncuda.tier = "safe"\n'):
        file.write_text(text)
        assert Config.load(tmp_path).tier == "safe"


def test_a_broken_file_that_does_not_speak_of_the_tool_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[[[")
    assert Config.load(tmp_path) == Config()


def test_no_toml_reader_is_loaded_without_a_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.black]\n")
    program = (
        "import sys; from pathlib import Path; from codemods.config import Config;"
        f"Config.load(Path({str(tmp_path)!r})); assert not {{'tomllib', 'tomli'}} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[1])
