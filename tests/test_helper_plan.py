"""Planned imports are tried out: the files get them, the helpers are written, and Python runs all that in every way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from codemods.engine.helper_plan import HelperConflict, HelperImport, HelperPlan
from codemods.source import repository
from codemods.source.import_lines import ImportLine, read_import_lines
from codemods.source.packaging import installed_packages, source_folders

HELPER = "# uncuda helper 0.1\nSERVES = True\n"
USE = "assert {name}.SERVES\n"
GUARD = 'if __name__ == "__main__":\n    print("ran")\n'
SETUP = "from setuptools import find_packages, setup\nsetup(name='pkg', packages=find_packages())\n"


class Repository:
    """A folder of files, some of which need the helper."""

    def __init__(self, root: Path, files: Mapping[str, str]) -> None:
        self.root = root
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def plan(self, *names: str, **options: str) -> HelperPlan:
        return HelperPlan.for_repository(
            [self.root / name for name in names], repository.Repository(self.root), **options
        )

    def convert(self, *names: str, helper: str = "ai_device", existing: str | None = None) -> dict[str, HelperImport]:
        """Writes the helpers and puts an import with a use at the end of each file."""
        plan = HelperPlan.for_repository(
            [self.root / n for n in names], repository.Repository(self.root), helper, existing
        )
        imports = {name: plan.for_file(self.root / name) for name in names}
        for target in plan.targets:
            target.write_text(HELPER)
        for name, planned in imports.items():
            path = self.root / name
            lines = f"{planned.module_statement}\n{USE.format(name=helper)}from {planned.from_module} import SERVES\n"
            if path.suffix == ".ipynb":
                notebook = json.loads(path.read_text())
                notebook["cells"].append({"cell_type": "code", "source": lines.splitlines(keepends=True)})
                path.write_text(json.dumps(notebook, indent=1))
            else:
                text = path.read_text()
                at = text.find(GUARD) if GUARD in text else len(text)
                path.write_text(text[:at] + lines + text[at:])
        return imports

    def targets(self, *names: str) -> list[str]:
        return [str(target.relative_to(self.root)) for target in self.plan(*names).targets]

    def run(self, *arguments: str, cwd: str = "", path: Sequence[Path] = ()) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *arguments]
        result = subprocess.run(command, cwd=self.root / cwd, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr

    def run_notebook(self, name: str) -> None:
        path = self.root / name
        cells = json.loads(path.read_text())["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        self.run("-c", code, cwd=str(path.parent.relative_to(self.root)))

    def install(self, site: Path, *packages: str) -> list[Path]:
        """What an installed project brings: its packages, and nothing around them."""
        for package in packages:
            shutil.copytree(self.root / package, site / package.removeprefix("src/"))
        return [site]


def notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]})


def statements(imports: Mapping[str, HelperImport]) -> dict[str, str]:
    return {name: planned.module_statement for name, planned in imports.items()}


# No packaging


def test_scripts_and_what_they_import(tmp_path: Path) -> None:
    files = {
        "train.py": "from models.net import Net\nfrom utils import misc\nimport loss\n" + GUARD,
        "eval.py": "import models.net\n",
        "models/net.py": "class Net: ...\n",
        "utils/__init__.py": "",
        "utils/misc.py": "",
        "utils/deep/er.py": "import utils.misc\n",
        "loss.py": "import torch_free = 0\n".replace(" torch_free = 0", " math"),
    }
    repository = Repository(tmp_path, files)
    imports = repository.convert(*files)
    assert set(statements(imports).values()) == {"import ai_device"}
    assert repository.targets(*files) == ["ai_device.py"]
    repository.run("train.py")
    repository.run("eval.py")
    repository.run(str(tmp_path / "train.py"), cwd="models")
    repository.run("-m", "train")
    repository.run("-m", "utils.deep.er")


def test_relative_imports_do_not_multiply_the_helper(tmp_path: Path) -> None:
    files = {
        "train.py": "from models import net\nfrom data import loader\n",
        "models/__init__.py": "",
        "models/net.py": "from .layers import X\n",
        "models/layers.py": "X = 1\n",
        "data/__init__.py": "",
        "data/loader.py": "from . import sets\n",
        "data/sets.py": "",
    }
    repository = Repository(tmp_path, files)
    imports = repository.convert("train.py", "models/net.py", "models/layers.py", "data/loader.py", "data/sets.py")
    assert repository.targets(*imports) == ["ai_device.py"]
    repository.run("train.py")


def test_one_package_with_relative_imports_keeps_the_helper_within(tmp_path: Path) -> None:
    files = {
        "net/__init__.py": "",
        "net/model.py": "from .parts.layers import X\n",
        "net/parts/__init__.py": "",
        "net/parts/layers.py": "from ..base import Y as X\n",
        "net/base.py": "Y = 1\n",
        "train.py": "from net.model import X\n",
    }
    repository = Repository(tmp_path, files)
    imports = repository.convert("net/model.py", "net/parts/layers.py", "net/base.py")
    assert statements(imports)["net/parts/layers.py"] == "from .. import ai_device"
    assert imports["net/parts/layers.py"].from_module == "..ai_device"
    assert {planned.target for planned in imports.values()} == {tmp_path / "net" / "ai_device.py"}
    repository.run("train.py")
    repository.run("-m", "net.model")
    repository.run("-c", "import net.base", path=[tmp_path], cwd="net/parts")


def test_lone_scripts_have_the_helper_beside_them(tmp_path: Path) -> None:
    files = {"mnist/main.py": "import math\n" + GUARD, "dcgan/main.py": "import json\n", "dcgan/sample.py": GUARD}
    repository = Repository(tmp_path, files)
    imports = repository.convert(*files)
    assert set(statements(imports).values()) == {"import ai_device"}
    assert repository.targets(*files) == ["dcgan/ai_device.py", "mnist/ai_device.py"]
    for name in files:
        repository.run(name)
        repository.run(Path(name).name, cwd=str(Path(name).parent))


def test_scripts_in_a_folder_that_put_the_root_on_the_path(tmp_path: Path) -> None:
    path = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))\n"
    files = {
        "tools/train.py": path + "from lib.nets import Tiny\n",
        "bench/time.py": path + "from lib.nets import Tiny\n",
        "lib/nets.py": "class Tiny: ...\n",
    }
    repository = Repository(tmp_path, files)
    repository.convert(*files)
    assert repository.targets(*files) == ["ai_device.py"]
    repository.run("tools/train.py")
    repository.run("time.py", cwd="bench")
    repository.run("-m", "tools.train")


def test_paths_set_by_a_neighbour(tmp_path: Path) -> None:
    setter = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))\n"
    files = {
        "tools/_init_paths.py": setter,
        "tools/train.py": "import _init_paths\nfrom core.loop import run\n",
        "tools/test.py": "import _init_paths\nfrom core.loop import run\n",
        "lib/core/loop.py": "from utils.misc import x\nrun = x\n",
        "lib/utils/misc.py": "x = 1\n",
    }
    repository = Repository(tmp_path, files)
    imports = repository.convert("tools/train.py", "tools/test.py", "lib/core/loop.py", "lib/utils/misc.py")
    assert repository.targets(*imports) == ["lib/ai_device.py"]
    repository.run("tools/train.py")
    repository.run("test.py", cwd="tools")


def test_a_module_that_is_a_script_too(tmp_path: Path) -> None:
    files = {"train.py": "import models.net\n", "models/net.py": "import math\n" + GUARD, "models/other.py": ""}
    repository = Repository(tmp_path, files)
    imports = repository.convert("models/net.py")
    assert imports["models/net.py"].targets == (tmp_path / "ai_device.py", tmp_path / "models" / "ai_device.py")
    repository.run("train.py")
    repository.run("models/net.py")
    repository.run("-m", "models.net")


def test_a_package_inside_which_scripts_import_each_other(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/train.py": "import utils\n" + GUARD,
        "pkg/utils.py": "x = 1\n",
        "utils.py": "raise SystemExit('the wrong one')\n",
    }
    repository = Repository(tmp_path, files)
    imports = repository.convert("pkg/train.py", "pkg/utils.py")
    assert repository.targets(*imports) == ["pkg/ai_device.py"]
    repository.run("pkg/train.py")
    repository.run("train.py", cwd="pkg")


def test_an_import_means_the_module_of_the_folder_from_which_the_file_is_imported(tmp_path: Path) -> None:
    files = {
        "train.py": "from pkg import net\n",
        "pkg/__init__.py": "",
        "pkg/net.py": "import utils\nassert utils.RIGHT\n",
        "pkg/utils.py": "RIGHT = False\n",
        "utils.py": "RIGHT = True\n",
    }
    repository = Repository(tmp_path, files)
    repository.convert("pkg/net.py")
    assert repository.targets("pkg/net.py") == ["ai_device.py"]
    repository.run("train.py")


def test_names_of_the_standard_library_are_no_evidence(tmp_path: Path) -> None:
    files = {
        "train.py": "from pkg.utils import misc\n",
        "pkg/utils/logging.py": "",
        "pkg/utils/wandb.py": "",
        "pkg/utils/misc.py": "import logging\ntry:\n    import wandb\nexcept ImportError:\n    pass\n",
    }
    repository = Repository(tmp_path, files)
    repository.convert("pkg/utils/misc.py")
    assert repository.targets("pkg/utils/misc.py") == ["ai_device.py"]
    repository.run("train.py")


def test_a_data_folder_is_not_the_package_of_that_name(tmp_path: Path) -> None:
    files = {"exp/run.py": "import datasets_of_mine\n", "datasets_of_mine/readme.txt": "", "exp/a.py": ""}
    assert Repository(tmp_path, files).targets("exp/run.py") == ["exp/ai_device.py"]


def test_a_repository_that_is_a_package_itself(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from .nodes import NODES\n",
        "nodes.py": "NODES = 1\n",
        "lib/__init__.py": "",
        "lib/net.py": "from ..nodes import NODES\n",
    }
    repository = Repository(tmp_path / "custom-node", files)
    imports = repository.convert(*files)
    assert statements(imports)["nodes.py"] == "from . import ai_device"
    assert statements(imports)["lib/net.py"] == "from .. import ai_device"
    assert repository.targets(*files) == ["ai_device.py"]
    repository.run("-c", "import importlib; importlib.import_module('custom-node.lib.net')", path=[tmp_path], cwd="lib")


def test_a_repository_that_imports_itself_by_its_name(tmp_path: Path) -> None:
    files = {"__init__.py": "", "net.py": "from mynet.base import x\n", "base.py": "x = 1\n"}
    repository = Repository(tmp_path / "mynet", files)
    imports = repository.convert("net.py", "base.py")
    assert statements(imports)["net.py"] == "from mynet import ai_device"
    repository.run("-c", "import mynet.net", path=[tmp_path], cwd="..")
    repository.run("net.py", path=[tmp_path])


def test_a_file_both_ways(tmp_path: Path) -> None:
    files = {
        "app/main.py": "try:\n    from .part import x\nexcept ImportError:\n    from part import x\n" + GUARD,
        "app/part.py": "x = 1\n",
        "run.py": "import app.main\n",
    }
    repository = Repository(tmp_path, files)
    repository.convert("app/main.py")
    repository.run("app/main.py")
    repository.run("run.py")
    repository.run("-m", "app.main")


def test_notebooks(tmp_path: Path) -> None:
    files = {
        "alone/demo.ipynb": notebook("import math", "x = 1"),
        "notebooks/demo.ipynb": notebook("import sys\nsys.path.append('..')", "from lib import net\n"),
        "broken.ipynb": "{not json",
        "lib/net.py": "",
        "train.py": "import lib.net\n",
    }
    repository = Repository(tmp_path, files)
    imports = repository.convert("alone/demo.ipynb", "notebooks/demo.ipynb", "lib/net.py")
    assert repository.targets(*imports) == ["ai_device.py", "alone/ai_device.py"]
    repository.run_notebook("alone/demo.ipynb")
    repository.run_notebook("notebooks/demo.ipynb")
    repository.run("train.py")
    assert repository.targets("broken.ipynb") == ["ai_device.py"]


@pytest.mark.parametrize("package", [True, False])
def test_tests_that_pytest_collects(tmp_path: Path, package: bool) -> None:
    files = {
        "tests/unit/test_net.py": "def test_it(): pass\n",
        "tests/unit/conftest.py": "import math\n",
        **({"tests/__init__.py": "", "tests/unit/__init__.py": ""} if package else {}),
    }
    repository = Repository(tmp_path, files)
    repository.convert("tests/unit/test_net.py", "tests/unit/conftest.py")
    assert repository.targets("tests/unit/test_net.py") == ["ai_device.py" if package else "tests/unit/ai_device.py"]
    repository.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", "tests")


# Packaging


PACKAGE = {
    "setup.py": SETUP,
    "pkg/__init__.py": "from pkg.net import Net\n",
    "pkg/net.py": "from pkg.ops.fused import op\nclass Net: ...\n",
    "pkg/cli.py": "import math\n" + GUARD,
    "pkg/ops/__init__.py": "from .fused import op\n",
    "pkg/ops/fused.py": "from ..base import x as op\n",
    "pkg/base.py": "x = 1\n",
    "train.py": "from pkg import Net\n",
    "tools/bench.py": "import pkg.net\n",
    "tests/test_net.py": "from pkg.net import Net\ndef test_it(): pass\n",
    "tools/plot.py": "import math\n",
}


def test_an_installable_package(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo", PACKAGE)
    needing = [name for name in PACKAGE if name not in ("setup.py", "tools/plot.py")]
    imports = repository.convert(*needing)
    assert {planned.targets for planned in imports.values()} == {(tmp_path / "repo" / "pkg" / "ai_device.py",)}
    assert statements(imports)["pkg/net.py"] == "from pkg import ai_device"
    assert statements(imports)["train.py"] == "from pkg import ai_device"
    assert imports["train.py"].from_module == "pkg.ai_device"
    assert statements(imports)["pkg/ops/fused.py"] == "from .. import ai_device"
    repository.run("train.py")
    repository.run("-m", "pkg.cli")
    site = repository.install(tmp_path / "site", "pkg")
    for script in ("tools/bench.py", "tests/test_net.py", "pkg/cli.py"):
        repository.run(script, path=site)
    repository.run("-m", "pkg.cli", path=site, cwd="tools")
    repository.run("-c", "import pkg.ops", path=site, cwd="tools")


def test_a_script_that_does_not_import_the_package(tmp_path: Path) -> None:
    repository = Repository(tmp_path, PACKAGE)
    imports = repository.convert("pkg/net.py", "tools/plot.py")
    assert statements(imports)["tools/plot.py"] == "import ai_device"
    assert repository.targets(*imports) == ["pkg/ai_device.py", "tools/ai_device.py"]
    repository.run("tools/plot.py")


def test_a_configuration_in_python_is_loaded_by_the_package(tmp_path: Path) -> None:
    files = {
        **PACKAGE,
        "configs/common/train.py": "train = dict(device=1)\n",
        "configs/optim.py": "from pkg import net\n",
    }
    repository = Repository(tmp_path, files)
    imports = repository.convert("pkg/net.py", "configs/common/train.py")
    assert statements(imports)["configs/common/train.py"] == "from pkg import ai_device"
    assert repository.targets(*imports) == ["pkg/ai_device.py"]


def test_source_layout(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "[build-system]\n[project]\nname = 'my-pkg'\n",
        "src/my_pkg/__init__.py": "",
        "src/my_pkg/net.py": "import my_pkg.base\n",
        "src/my_pkg/base.py": "",
        "examples/run.py": "from my_pkg import net\n",
    }
    repository = Repository(tmp_path / "repo", files)
    imports = repository.convert("src/my_pkg/net.py", "src/my_pkg/base.py", "examples/run.py")
    assert set(statements(imports).values()) == {"from my_pkg import ai_device"}
    assert repository.targets(*imports) == ["src/my_pkg/ai_device.py"]
    repository.run("examples/run.py", path=repository.install(tmp_path / "site", "src/my_pkg"))


def test_only_a_part_of_a_namespace_is_installed(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\n[tool.setuptools.packages.find]\ninclude = ["mega.core", "mega.core.*"]\n',
        "mega/core/__init__.py": "",
        "mega/core/net.py": "import mega.core.base\n",
        "mega/core/base.py": "",
        "mega/training/loop.py": "from mega.core import net\nfrom mega.training import args\n",
        "mega/training/args.py": "",
        "pretrain.py": "from mega.training.loop import net\n",
    }
    repository = Repository(tmp_path / "repo", files)
    imports = repository.convert("mega/core/net.py", "mega/core/base.py", "mega/training/loop.py")
    assert set(statements(imports).values()) == {"from mega.core import ai_device"}
    assert repository.targets(*imports) == ["mega/core/ai_device.py"]
    repository.run("pretrain.py")
    repository.run("-c", "import mega.core.net", path=repository.install(tmp_path / "site", "mega/core"), cwd="..")


def test_a_package_built_within_another(tmp_path: Path) -> None:
    files = {
        "main.py": "from models.ops.modules import attn\n",
        "models/__init__.py": "",
        "models/ops/setup.py": SETUP,
        "models/ops/modules/__init__.py": "from .attn import A\n",
        "models/ops/modules/attn.py": "from ..functions.fn import f\nA = 1\n",
        "models/ops/functions/__init__.py": "",
        "models/ops/functions/fn.py": "f = 1\n",
        "models/ops/test.py": "from functions.fn import f\n",
    }
    repository = Repository(tmp_path, files)
    names = [name for name in files if not name.endswith(("setup.py", "__init__.py"))]
    imports = repository.convert(*names)
    assert statements(imports)["models/ops/functions/fn.py"].startswith(("from . ", "from functions "))
    repository.run("main.py")
    repository.run("test.py", cwd="models/ops")


def test_a_project_with_settings_only_is_not_installed(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "[tool.black]\nline-length = 100\n",
        "models/__init__.py": "",
        "models/net.py": "",
        "main.py": "import models.net\n",
    }
    assert Repository(tmp_path, files).targets("models/net.py", "main.py") == ["ai_device.py"]


@pytest.mark.parametrize(
    ("text", "installed"),
    [
        ("setup(packages=find_packages())", {"pkg", "other"}),
        ("setup(packages=find_packages(exclude=('other', 'tests*')))", {"pkg"}),
        ("setup(packages=['pkg', 'pkg.sub'])", {"pkg"}),
        ('setup(py_modules=["pkg"])', {"pkg"}),
        ("setup(ext_modules=[x])", set()),
        ("[options]\npackages = find:\n", {"pkg", "other"}),
        ("[project]\nname = 'other'\n", {"other"}),
        ("[project]\nname = 'tool-with-two-packages'\n", set()),
        ("[tool.poetry]\nname = 'x'\npackages = [{include = 'pkg'}]\n", {"pkg"}),
        ("[tool.setuptools.packages.find]\ninclude = ['pkg*']\n", {"pkg"}),
        ("[tool.setuptools]\npackages = []\n[project]\n", set()),
        ("[tool.ruff]\n", set()),
    ],
)
def test_what_is_installed(text: str, installed: set[str]) -> None:
    assert installed_packages(text, {"pkg", "other", "tests", "scripts"}) == installed


def test_the_only_package_is_installed() -> None:
    assert installed_packages("[project]\nname = 'x'\n", {"pkg", "tests"}) == {"pkg"}


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("package_dir={'': 'python'}", "python"),
        ("find_packages('lib')", "lib"),
        ('where = ["code"]', "code"),
        ("find_packages(where='a/b')", "a/b"),
    ],
)
def test_source_folders(text: str, folder: str) -> None:
    assert source_folders(text) == {"", "src", folder}


# Names and helpers that are there


def test_another_module_of_that_name_where_the_helper_would_go(tmp_path: Path) -> None:
    for taken in ("ai_device.py", "ai_device/__init__.py"):
        root = tmp_path / taken.partition(".")[0].replace("/", "_")
        repository = Repository(root, {"train.py": "import lib.net\n", "lib/net.py": "", taken: "x = 1\n"})
        with pytest.raises(HelperConflict) as caught:
            repository.plan("lib/net.py")
        assert str(root / taken.removesuffix("/__init__.py")) in str(caught.value)
        assert "lib/net.py" in str(caught.value)
        assert "--helper-name" in str(caught.value)
        assert repository.plan("lib/net.py", name="dev").targets == (root / "dev.py",)


def test_another_module_of_that_name_that_is_found_first(tmp_path: Path) -> None:
    path = "import sys\nsys.path.append('.')\n"
    files = {
        "a/train.py": path + "from lib import net\n",
        "b/train.py": path + "from lib import net\n",
        "lib/net.py": "",
        "a/ai_device.py": "x = 1\n",
    }
    with pytest.raises(HelperConflict, match="ai_device"):
        Repository(tmp_path, files).plan("a/train.py", "b/train.py", "lib/net.py")


def test_a_module_of_that_name_elsewhere_is_no_conflict(tmp_path: Path) -> None:
    files = {"a/train.py": "", "b/ai_device.py": "x = 1\n"}
    assert Repository(tmp_path, files).targets("a/train.py") == ["a/ai_device.py"]


def test_a_helper_that_is_there_is_used(tmp_path: Path) -> None:
    files = {
        "train.py": "from net import model\n",
        "net/__init__.py": "",
        "net/model.py": "from .base import x\n",
        "net/base.py": "x = 1\n",
        "ai_device.py": "# SPDX\n" * 20 + HELPER,
    }
    repository = Repository(tmp_path, files)
    assert repository.targets("net/model.py", "net/base.py") == ["ai_device.py"]
    (tmp_path / "ai_device.py").unlink()
    assert repository.targets("net/model.py", "net/base.py") == ["net/ai_device.py"]


def test_a_second_run_plans_the_same(tmp_path: Path) -> None:
    repository = Repository(tmp_path, PACKAGE)
    needing = [name for name in PACKAGE if name != "setup.py"]
    first = repository.convert(*needing)
    plan = repository.plan(*needing)
    assert {name: plan.for_file(tmp_path / name) for name in needing} == first


def test_the_order_of_the_files_does_not_matter(tmp_path: Path) -> None:
    repository = Repository(tmp_path, PACKAGE)
    names = list(PACKAGE)
    one, other = repository.plan(*names), repository.plan(*reversed(names))
    assert all(one.for_file(tmp_path / name) == other.for_file(tmp_path / name) for name in names)


def test_the_plan_is_the_same_in_every_process(tmp_path: Path) -> None:
    packages = ("alpha", "beta", "gamma", "delta")
    files = {"setup.py": SETUP, "all.py": "".join(f"import {package}\n" for package in packages)}
    for package in packages:
        files |= {f"{package}/__init__.py": "", f"{package}/net.py": ""}
    Repository(tmp_path, files)
    program = (
        "from pathlib import Path; from codemods.engine.helper_plan import HelperPlan;"
        f"from codemods.source.repository import Repository; root = Path({str(tmp_path)!r});"
        "files = sorted(root.rglob('*.py')); plan = HelperPlan.for_repository(files, Repository(root));"
        "print([plan.for_file(file).module_statement for file in files])"
    )
    plans = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])},
            check=True,
            capture_output=True,
        ).stdout
        for seed in "123456"
    }
    assert len(plans) == 1


def test_an_own_helper(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/device.py": "SERVES = True\n",
        "pkg/net.py": "from . import device\n",
        "train.py": "import pkg.net\n",
    }
    repository = Repository(tmp_path, files)
    imports = repository.convert("pkg/net.py", "train.py", existing="pkg.device")
    assert set(imports.values()) == {HelperImport("import pkg.device as ai_device", "pkg.device", ())}
    assert imports["train.py"].target is None
    assert repository.plan("train.py", existing="pkg.device").targets == ()
    repository.run("train.py")
    with pytest.raises(HelperConflict, match=r"no module 'pkg\.devices'"):
        repository.plan("train.py", existing="pkg.devices")


def test_an_own_helper_of_that_very_name(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"train.py": "", "ai_device.py": ""})
    planned = repository.plan("train.py", existing="ai_device").for_file(tmp_path / "train.py")
    assert planned.module_statement == "import ai_device"


def test_files_that_a_walk_leaves_out(tmp_path: Path) -> None:
    files = {
        "third_party/x/run.py": "import part\n",
        "third_party/x/part.py": "",
        "bin/train": "#!/usr/bin/env python\n",
    }
    repository = Repository(tmp_path, files)
    repository.convert("third_party/x/run.py", "bin/train")
    assert repository.targets(*files) == ["bin/ai_device.py", "third_party/x/ai_device.py"]
    repository.run("third_party/x/run.py")
    repository.run("bin/train")


def test_an_import_of_code_that_a_walk_leaves_out_is_evidence(tmp_path: Path) -> None:
    files = {
        "tools/train.py": "import third_party.x\n",
        "tools/b/eval.py": "import third_party.x\n",
        "third_party/x.py": "",
    }
    repository = Repository(tmp_path, files)
    repository.convert("tools/train.py", "tools/b/eval.py")
    repository.run("tools/b/eval.py", path=[tmp_path])
    assert repository.targets("tools/train.py", "tools/b/eval.py") == ["ai_device.py"]


def test_relative_paths_and_files_outside_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Repository(tmp_path, {"a/train.py": ""})
    monkeypatch.chdir(tmp_path / "a")
    plan = HelperPlan.for_repository([Path("train.py")], repository.Repository(Path("..")))
    assert plan.for_file(tmp_path / "a" / "train.py").module_statement == "import ai_device"
    assert [target.resolve() for target in plan.targets] == [tmp_path / "a" / "ai_device.py"]
    with pytest.raises(KeyError):
        plan.for_file(tmp_path / "other.py")


def test_nothing_to_plan(tmp_path: Path) -> None:
    assert HelperPlan.for_repository([], repository.Repository(tmp_path)).targets == ()


# Import lines


def test_import_lines() -> None:
    source = b"""#!/usr/bin/env python3
import a, b.c as d  # comment
from . import (  # comment, with a comma
    x,
    y as z,
)
from ..p.q import r, \\
    s
from.t import*
def f():
    import lazy; from u import v
importlib.x
from_ = 1
"""
    lines = read_import_lines(source)
    assert lines.imports == (
        ImportLine("a", 0, (), True),
        ImportLine("b.c", 0, (), True),
        ImportLine("", 1, ("x", "y"), True),
        ImportLine("p.q", 2, ("r",), True),
        ImportLine("t", 1, ("*",), True),
        ImportLine("lazy", 0, (), False),
    )
    assert lines.level == 2
    assert lines.is_program
    assert not lines.acts
    assert not lines.changes_path


@pytest.mark.parametrize(
    ("source", "program", "acts"),
    [
        (b'if __name__ == "__main__":\n', True, False),
        (b"if '__main__' == __name__: run()\n", False, False),
        (b"for x in y: pass\n", False, True),
        (b"args = parser.parse_args()\n", False, True),
        (b"def f():\n    for x in y: pass\n", False, False),
    ],
)
def test_programs(source: bytes, program: bool, acts: bool) -> None:
    lines = read_import_lines(source)
    assert (lines.is_program, lines.acts) == (program, acts)
