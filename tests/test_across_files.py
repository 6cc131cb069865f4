"""What is known of a repository beyond one file: options, settings, integers and layers that cross files."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from conversion import Tree


def converted(root: Path, **files: str) -> dict[str, str]:
    """The files after ``convert --write``, by name; a second run finds nothing to change."""
    tree = Tree(root)
    tree.write({name.replace("__", "."): textwrap.dedent(text).lstrip("\n") for name, text in files.items()})
    tree.run("convert", str(root), "--write")
    again = tree.run("convert", str(root))
    assert again.stdout == ""
    return {name.replace("__", "."): tree.read(name.replace("__", ".")) for name in files}


def statement(text: str, word: str) -> str:
    """The first line of a text that holds a word, without its indentation."""
    return next(line.strip() for line in text.splitlines() if word in line)


# -- Options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"--device", default="cuda"', '"--device", default=str(ai_device.device()), type=ai_device.device_name'),
        ('"--device", type=str', '"--device", type=str'),
        (
            '"--device", default="cuda:0", type=torch.device',
            '"--device", default=str(ai_device.device(0)), type=ai_device.device',
        ),
        ('"--device", default="cuda", type=parsed', '"--device", default=str(ai_device.device()), type=parsed'),
        ('"--device", default="cuda", nargs="+"', '"--device", default=str(ai_device.device()), nargs="+"'),
        ('"--device-type", default="cuda"', '"--device-type", default=ai_device.device_type()'),
        ('"--backend", default="nccl"', '"--backend", default=ai_device.backend(), type=ai_device.backend'),
        ('"--gpu", type=int, default=0', '"--gpu", type=int, default=0'),
        ('"--no-cuda", action="store_true"', '"--no-cuda", action="store_true"'),
    ],
)
def test_the_values_of_an_option_follow_where_it_is_defined(tmp_path: Path, before: str, after: str) -> None:
    options = f"""
        import argparse
        import torch

        def parsed(text):
            return text

        parser = argparse.ArgumentParser()
        parser.add_argument({before})
        """
    assert statement(converted(tmp_path, options__py=options)["options.py"], "add_argument") == (
        f"parser.add_argument({after})"
    )


def test_an_option_that_is_used_as_a_device_is_one(tmp_path: Path) -> None:
    train = """
        import argparse
        import torch

        parser = argparse.ArgumentParser()
        parser.add_argument("--device", type=str, default="cpu")
        args = parser.parse_args()
        net = torch.nn.Linear(2, 2).to(args.device)
        """
    assert "type=ai_device.device_name" in converted(tmp_path, train__py=train)["train.py"]


def test_an_option_of_click(tmp_path: Path) -> None:
    train = """
        import click
        import torch

        @click.command()
        @click.option("--device", default="cuda")
        @click.option("--where", type=click.Choice(["cuda", "cpu"]))
        def main(device, where):
            print(torch.ones(1, device=device))
        """
    after = converted(tmp_path, train__py=train)["train.py"]
    assert '@click.option("--device", default=str(ai_device.device()), type=ai_device.device_name)' in after
    assert 'click.Choice(ai_device.device_choices(["cuda", "cpu"]))' in after


@pytest.mark.parametrize(
    ("head", "foot"),
    [
        ("import fire", "fire.Fire(main)"),
        ("import typer", "typer.run(main)"),
        ("import typer\n\napp = typer.Typer()\n\n\n@app.command()", "app()"),
    ],
)
def test_a_parameter_that_a_command_line_fills(tmp_path: Path, head: str, foot: str) -> None:
    train = f"""import torch
{head}
def main(path, device="cuda:1", device_type="cuda"):
    net = torch.nn.Linear(2, 2).to(device)
    return torch.ones(1, device=device), torch.device(device), path


def inner(device):
    return torch.ones(1, device=device)


{foot}
"""
    after = converted(tmp_path, train__py=train)["train.py"]
    assert ".to(ai_device.device(device))" in after
    assert "device=ai_device.device(device)), ai_device.device(device), path" in after
    assert "def inner(device):\n    return torch.ones(1, device=device)" in after


# -- Settings ------------------------------------------------------------------------------------------------------

BUILD = """
    import torch

    def build(cfg, net, optimizer):
        device = torch.device(cfg.train.device)
        return net.to(cfg["device"]), torch.zeros(2, device=cfg.get("device")), device
    """


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train__yaml", "train:\n  device: cuda:0  # the first\n"),
        ("train__json", '{\n  "device": "cuda"\n}\n'),
        ("train__toml", '[train]\ndevice = "cuda"\n'),
        ("flags__py", 'from absl import flags\n\nflags.DEFINE_string("device", "cuda", "where")\n'),
        ("config__py", 'import hydra\n\n\nclass Config:\n    device: str = "cuda"\n'),
    ],
)
def test_a_setting_that_names_cuda_is_translated_where_it_is_used(tmp_path: Path, name: str, text: str) -> None:
    after = converted(tmp_path, build__py=BUILD, **{name: text})["build.py"]
    assert "device = ai_device.device(cfg.train.device)" in after
    assert 'net.to(ai_device.device(cfg["device"]))' in after
    assert 'device=ai_device.device(cfg.get("device"))' in after


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train__yaml", "device: cpu\n"),
        ("train__yaml", "# device: cuda\n"),
        ("train__yaml", "notes: the device is cuda\n"),
        ("config__py", 'class Config:\n    device: str = "cuda"\n'),
    ],
)
def test_a_setting_that_cannot_name_cuda_stays(tmp_path: Path, name: str, text: str) -> None:
    after = converted(tmp_path, build__py=BUILD, **{name: text})["build.py"]
    assert after == textwrap.dedent(BUILD).lstrip("\n")


def test_a_device_of_a_tensor_is_no_setting(tmp_path: Path) -> None:
    move = """
        def move(x, param, self):
            return x.to(param.device), x.to(self.device), x.to(x.device)
        """
    after = converted(tmp_path, move__py=move, train__yaml="device: cuda\n")["move.py"]
    assert after == textwrap.dedent(move).lstrip("\n")


# -- Integers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("move(batch, args.gpu)", "x.to(ai_device.device(where))"),
        ("move(torch.ones(1, 2), where=local_rank)", "x.to(ai_device.device(where))"),
        ("move(batch, gpu_id)", "x.to(ai_device.device(where))"),
        ("move(batch, args.device)", "x.to(where)"),
        ("other(batch, args.gpu)", "x.to(where)"),
        ("move((batch, gpu))", "x.to(where)"),
    ],
)
def test_an_integer_crosses_the_border_of_a_function(tmp_path: Path, call: str, after: str) -> None:
    library = """
        import torch.cuda

        def move(x, where):
            return x.to(where)
        """
    train = f"""
        import torch
        from library import move

        def pull(batch, args, local_rank, gpu_id, gpu):
            return {call}
        """
    assert after in converted(tmp_path, library__py=library, train__py=train)["library.py"]


@pytest.mark.parametrize(
    ("value", "is_index"),
    [
        ("torch.cuda.current_device()", True),
        ('int(os.environ["LOCAL_RANK"])', True),
        ('int(os.environ.get("LOCAL_RANK", 0))', True),
        ("rank % torch.cuda.device_count()", True),
        ("rank % args.n_gpus", True),
        ('int(os.environ["PORT"])', False),
        ("pick()", False),
        ("torch.npu.current_device()", False),
        ('torch.device("cuda")', False),
        ('args.device or "cpu"', False),
    ],
)
def test_a_variable_is_an_index_by_what_it_is_assigned(tmp_path: Path, value: str, is_index: bool) -> None:
    train = f"""
        import os
        import torch

        def main(rank, args, pick):
            place = {value}
            torch.cuda.synchronize()
            return torch.zeros(2, device=place), torch.ones(1).to(place), torch.device(place)
        """
    after = converted(tmp_path, train__py=train)["train.py"]
    assert after.count("ai_device.device(place)") == (3 if is_index else 0)


@pytest.mark.parametrize(
    ("use", "is_device"),
    [
        ("torch.cuda.set_device(device)", True),
        ("net.cuda(device)", True),
        ("print(device)", False),
        ("seed = 7 * device", False),
        ("pull(device)", False),
        ("device = 3 if rank else device", False),
        ('torch.cuda.get_device_properties("cuda:{}".format(device))', False),
        ("torch.device(device)", True),
    ],
)
def test_an_index_that_is_used_as_a_device_alone_becomes_one(tmp_path: Path, use: str, is_device: bool) -> None:
    train = f"""
        import torch

        def main(rank, net, pull):
            device = rank % torch.cuda.device_count()
            {use}
            return net.to(device), torch.zeros(2, device=device)
        """
    after = converted(tmp_path, train__py=train)["train.py"]
    assert ("device = ai_device.device(rank % ai_device.device_count())" in after) == is_device
    assert ("net.to(device)" in after) == (is_device or use.startswith("device = 3"))


def test_a_device_that_is_called_like_an_index_is_none(tmp_path: Path) -> None:
    train = """
        import torch

        def main(net):
            gpu = torch.device("cuda")
            return net.to(gpu)
        """
    after = converted(tmp_path, train__py=train)["train.py"]
    assert "gpu = ai_device.device()" in after
    assert "net.to(gpu)" in after


def test_the_current_device_is_an_index_or_a_device_by_its_use(tmp_path: Path) -> None:
    train = """
        import torch

        def main(net):
            index = torch.cuda.current_device()
            print(index, torch.cuda.get_device_name(index), {"rank": torch.cuda.current_device()})
            place = torch.device(torch.cuda.current_device())
            return net.to(torch.cuda.current_device()), torch.zeros(2, device=index), place
        """
    after = converted(tmp_path, train__py=train)["train.py"]
    assert "place = ai_device.device(ai_device.current_device())" in after
    assert 'print(index, ai_device.get_device_name(index), {"rank": ai_device.current_device()})' in after
    assert "net.to(ai_device.device(ai_device.current_device()))" in after
    assert "device=ai_device.device(index)" in after


# -- Constants and classes -----------------------------------------------------------------------------------------


def test_a_constant_is_converted_where_it_is_defined(tmp_path: Path) -> None:
    constants = 'DEVICE = "cuda"\nCONFIG = {"device": "cuda:1", "name": "cuda"}\n'
    train = "import torch\nfrom constants import DEVICE\n\nx = torch.ones(1).to(DEVICE)\n"
    after = converted(tmp_path, constants__py=constants, train__py=train)
    assert "DEVICE = str(ai_device.device())" in after["constants.py"]
    assert 'CONFIG = {"device": str(ai_device.device(1)), "name": "cuda"}' in after["constants.py"]
    assert after["train.py"] == train


def test_a_class_with_a_cuda_of_its_own_is_known_in_every_file(tmp_path: Path) -> None:
    batch = "class Batch:\n    def cuda(self):\n        return Batch(self.x.cuda())\n"
    train = "from batch import Batch\n\nb = Batch().cuda()\n"
    after = converted(tmp_path, batch__py=batch, train__py=train)
    assert "self.x.to(ai_device.device())" in after["batch.py"]
    assert after["train.py"] == train


# -- Device layers of frameworks -----------------------------------------------------------------------------------


def test_a_layer_is_used_only_where_it_is_bound_before(tmp_path: Path) -> None:
    train = """
        import torch
        from accelerate import Accelerator

        early = torch.ones(1, device="cuda")
        accelerator = Accelerator()
        late = torch.ones(1, device="cuda")

        def helper(accelerator):
            return torch.ones(1, device="cuda")

        def inner():
            return torch.ones(1, device="cuda")
        """
    after = converted(tmp_path, train__py=train)["train.py"]
    assert "early = torch.ones(1, device=ai_device.device())" in after
    assert "late = torch.ones(1, device=accelerator.device)" in after
    assert "def helper(accelerator):\n    return torch.ones(1, device=ai_device.device())" in after
    assert "def inner():\n    return torch.ones(1, device=accelerator.device)" in after


def test_two_sources_are_reported_where_both_choose(tmp_path: Path) -> None:
    train = "import torch\nfrom accelerate import Accelerator\n\naccelerator = Accelerator()\ntorch.cuda.%s\n"
    tree = Tree(tmp_path)
    tree.write({"train.py": train % "empty_cache()"})
    assert "train.py:4:15 UC352 manual" in tree.run("convert", str(tmp_path)).stderr
    tree.write({"train.py": train.replace("torch.cuda.%s", 'x = torch.ones(1, device="cuda")')})
    assert "UC352" not in tree.run("convert", str(tmp_path)).stderr


def test_a_class_of_the_same_name_is_no_layer(tmp_path: Path) -> None:
    train = """
        import torch
        from mylib import Accelerator

        accelerator = Accelerator()
        x = torch.ones(1, device="cuda")
        """
    assert "device=ai_device.device()" in converted(tmp_path, train__py=train)["train.py"]


def test_deepspeed_gives_backend_devices_and_functions(tmp_path: Path) -> None:
    train = """
        import torch
        import torch.distributed as dist
        from deepspeed.accelerator import get_accelerator

        def main(net, rank):
            dist.init_process_group("nccl")
            torch.cuda.set_device(rank)
            net = net.cuda(rank).to("cuda")
            print(torch.cuda.utilization())
        """
    after = converted(tmp_path, train__py=train)["train.py"]
    assert "dist.init_process_group(get_accelerator().communication_backend_name())" in after
    assert "get_accelerator().set_device(rank)" in after
    assert "net.to(get_accelerator().device_name(rank)).to(get_accelerator().current_device_name())" in after
    assert "ai_device.utilization()" in after  # DeepSpeed has no word for it


# -- What reaches a converted place --------------------------------------------------------------------------------


def test_a_setting_that_reaches_a_converted_place_is_a_note(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write({"train.yaml": "device: cuda:0\n", "build.py": textwrap.dedent(BUILD).lstrip("\n")})
    assert "train.yaml:1:9 UC721 note" in tree.run("convert", str(tmp_path), "--notes", "--write").stderr
    assert "train.yaml:1:9 UC721 note" in tree.run("convert", str(tmp_path), "--notes").stderr


def test_a_setting_that_nothing_is_known_of_is_left_to_a_person(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write({"train.yaml": "device: cuda:0\n", "build.py": "import torch\n"})
    assert "train.yaml:1:9 UC721 manual" in tree.run("convert", str(tmp_path)).stderr


def test_an_option_on_a_launch_line_reaches_its_definition(tmp_path: Path) -> None:
    options = """
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("--device", default="cuda")
        parser.add_argument("--dist-backend", default="nccl")
        """
    tree = Tree(tmp_path)
    launch = "python train.py --device cuda --dist-backend nccl\n"
    tree.write({"train.sh": launch, "train.py": textwrap.dedent(options).lstrip("\n")})
    said = tree.run("convert", str(tmp_path), "--notes").stderr
    assert [line.split(" ")[2] for line in said.splitlines() if "UC713" in line] == ["note", "note"]
