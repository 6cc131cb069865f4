"""The collectives of the virtual device, in two processes: what arrives, what is refused, and data-parallel training.

A rank is this file run as a script: ``python test_rehearse_distributed.py <device> <rank> <folder>``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

RANKS = 2
STEPS = 5
ROOT = Path(__file__).resolve().parent.parent
BACKENDS = {"npu": "hccl", "mlu": "cncl", "musa": "mccl"}  # gcu and supa: test_rehearse_device.py, in one process


def start(device: str, folder: Path) -> list[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [sys.executable, __file__, device, str(rank), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(RANKS)
    ]


def outputs(processes: list[subprocess.Popen[str]]) -> list[str]:
    with ThreadPoolExecutor(RANKS) as pool:
        ends = list(pool.map(lambda process: process.communicate(timeout=120), processes))
    for process, (_, errors) in zip(processes, ends, strict=True):
        assert process.returncode == 0, errors
    return [out for out, _ in ends]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[str]]]:
    """For each device and rank the lines that it printed: the losses of a training, then what checks found."""
    found = {}
    for device in ("cpu", *BACKENDS):
        ended = outputs(start(device, tmp_path_factory.mktemp(device)))
        found[device] = [out.splitlines() for out in ended]
    return found


@pytest.mark.parametrize("device", BACKENDS)
def test_ranks_train_as_on_the_cpu(device: str, ranks: dict[str, list[list[str]]]) -> None:
    expected = [lines[:STEPS] for lines in ranks["cpu"]]
    assert all(float(loss) > 0 for lines in expected for loss in lines)
    assert [lines[:STEPS] for lines in ranks[device]] == expected


# -- What a rank does ----------------------------------------------------------------------------------------------


def check_allreduce(dist: Any, torch: Any, rank: int) -> None:
    one = torch.full((3,), rank + 1.0, device=place(rank))
    dist.all_reduce(one)
    assert one.tolist() == [3.0] * 3
    dist.all_reduce(one, op=dist.ReduceOp.MAX)
    dist.all_reduce(one, op=dist.ReduceOp.AVG)
    assert one.tolist() == [3.0] * 3


def check_allreduce_of_low_precision(dist: Any, torch: Any, rank: int) -> None:
    for dtype in (torch.bfloat16, torch.float16, torch.int64):
        one = torch.full((2,), rank + 1, dtype=dtype, device=place(rank))
        dist.all_reduce(one)
        assert one.tolist() == [3, 3]


def check_asynchronous_allreduce(dist: Any, torch: Any, rank: int) -> None:
    one = torch.ones(2, device=place(rank))
    work = dist.all_reduce(one, async_op=True)
    work.wait()
    assert work.is_completed()
    assert one.tolist() == [2.0, 2.0]
    assert work.get_future().value()[0].device == one.device


def check_broadcast_and_reduce(dist: Any, torch: Any, rank: int) -> None:
    one = torch.full((2,), float(rank), device=place(rank))
    dist.broadcast(one, src=1)
    assert one.tolist() == [1.0, 1.0]
    dist.reduce(one, dst=0)
    assert one.tolist() == ([2.0, 2.0] if rank == 0 else [1.0, 1.0])


def check_allgather(dist: Any, torch: Any, rank: int) -> None:
    own = torch.tensor([rank, rank + 10], device=place(rank))
    parts = [torch.empty_like(own) for _ in range(RANKS)]
    dist.all_gather(parts, own)
    assert [part.tolist() for part in parts] == [[0, 10], [1, 11]]
    whole = torch.empty(4, dtype=own.dtype, device=own.device)
    dist.all_gather_into_tensor(whole, own)
    assert whole.tolist() == [0, 10, 1, 11]
    assert parts[0].device == whole.device == own.device


def check_reduce_scatter(dist: Any, torch: Any, rank: int) -> None:
    parts = [torch.full((2,), float(rank + i), device=place(rank)) for i in range(RANKS)]
    own = torch.empty(2, device=place(rank))
    dist.reduce_scatter(own, parts)
    assert own.tolist() == [[1.0, 1.0], [3.0, 3.0]][rank]
    assert parts[0].tolist() == [rank, rank]
    dist.reduce_scatter_tensor(own, torch.cat(parts), op=dist.ReduceOp.AVG)
    assert own.tolist() == [[0.5, 0.5], [1.5, 1.5]][rank]


def check_all_to_all(dist: Any, torch: Any, rank: int) -> None:
    sent = torch.tensor([10 * rank, 10 * rank + 1], device=place(rank))
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    assert received.tolist() == [rank, 10 + rank]
    parts = [torch.empty(1, dtype=sent.dtype, device=place(rank)) for _ in range(RANKS)]
    dist.all_to_all(parts, list(sent.chunk(2)))
    assert [part.item() for part in parts] == [rank, 10 + rank]


def check_gather_and_scatter(dist: Any, torch: Any, rank: int) -> None:
    own = torch.tensor([float(rank)], device=place(rank))
    parts = [torch.empty_like(own) for _ in range(RANKS)] if rank == 0 else None
    dist.gather(own, parts, dst=0)
    assert parts is None or [part.item() for part in parts] == [0.0, 1.0]
    dist.scatter(own, [own + 5, own + 6] if rank == 0 else None, src=0)
    assert own.item() == 5.0 + rank


def check_send_and_receive(dist: Any, torch: Any, rank: int) -> None:
    one = torch.full((2,), float(rank), device=place(rank))
    other = torch.empty_like(one)
    works = [dist.isend(one, 1 - rank), dist.irecv(other, 1 - rank)]
    for work in works:
        work.wait()
    assert other.tolist() == [1.0 - rank] * 2
    requests = dist.batch_isend_irecv([dist.P2POp(dist.isend, one, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)])
    for request in requests:
        request.wait()
    if rank == 0:
        dist.send(one, 1)
    else:
        dist.recv(one, 0)
    assert one.tolist() == [0.0, 0.0]


def check_barrier_and_objects(dist: Any, torch: Any, rank: int) -> None:
    dist.barrier()
    dist.barrier(device_ids=[rank])
    gathered: list[Any] = [None] * RANKS
    dist.all_gather_object(gathered, {"rank": rank})
    assert gathered == [{"rank": 0}, {"rank": 1}]
    values = [rank, "word"]
    dist.broadcast_object_list(values, src=1)
    assert values == [1, "word"]


def check_new_group(dist: Any, torch: Any, rank: int) -> None:
    both, alone = dist.new_group([0, 1]), dist.new_group([0])
    one = torch.ones(1, device=place(rank))
    dist.all_reduce(one, group=both)
    if rank == 0:
        dist.all_reduce(one, group=alone)
    assert one.item() == 2.0
    on_host = dist.new_group([0, 1], backend="gloo")
    plain = torch.ones(1)
    dist.all_reduce(plain, group=on_host)
    assert plain.item() == 2.0
    assert dist.get_backend(both) == "hccl"
    assert dist.get_backend(on_host) == "gloo"


def check_tensors_of_the_cpu_are_refused(dist: Any, torch: Any, rank: int) -> None:
    with pytest.raises(RuntimeError, match=r"device type cpu.*hccl.*test_rehearse_distributed\.py"):
        dist.all_reduce(torch.ones(1))


def check_names_of_the_backend(dist: Any, torch: Any, rank: int) -> None:
    assert dist.get_backend() == "hccl"
    assert dist.is_hccl_available()
    with pytest.raises(RuntimeError, match=r"nccl is named at .*test_rehearse_distributed\.py"):
        dist.new_group([0, 1], backend="nccl")


def check_synchronised_batch_norm(dist: Any, torch: Any, rank: int) -> None:
    torch.manual_seed(0)
    norm = torch.nn.SyncBatchNorm(3).to(place(rank))
    batch = torch.randn(RANKS, 4, 3)
    normal = torch.nn.functional.batch_norm(batch.flatten(0, 1), None, None, training=True)
    found = norm(batch[rank].to(place(rank)))
    torch.testing.assert_close(found.cpu().detach(), normal.unflatten(0, (RANKS, 4))[rank])


def check_gradients_that_are_views_of_buckets(dist: Any, torch: Any, rank: int) -> None:
    parallel = torch.nn.parallel.DistributedDataParallel
    model = parallel(torch.nn.Linear(2, 2).to(place(rank)), device_ids=[rank], gradient_as_bucket_view=True)
    for _ in range(2):
        model.zero_grad()
        model(torch.full((1, 2), rank + 1.0, device=place(rank))).sum().backward()
        assert model.module.weight.grad.tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert model.module.weight.grad.device == place(rank)


def check_gradients_without_synchronisation(dist: Any, torch: Any, rank: int) -> None:
    parallel = torch.nn.parallel.DistributedDataParallel
    model = parallel(torch.nn.Linear(1, 1, bias=False).to(place(rank)), device_ids=[rank])
    one = torch.full((1, 1), rank + 1.0, device=place(rank))
    with model.no_sync():
        model(one).sum().backward()
    assert model.module.weight.grad.item() == rank + 1
    model(one).sum().backward()
    assert model.module.weight.grad.item() == 3.0


def check_fully_sharded_training(dist: Any, torch: Any, rank: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    def losses(shard: Callable[[Any], Any]) -> list[float]:
        torch.manual_seed(0)
        layers = [torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)]
        model = shard(torch.nn.Sequential(*layers).to(place(rank)))
        optimizer, found = torch.optim.Adam(model.parameters(), lr=0.05), []
        for _ in range(4):
            optimizer.zero_grad()
            loss: Any = model(torch.ones(2, 8, device=place(rank))).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    alone = losses(lambda model: model)
    sharded = losses(lambda model: FullyShardedDataParallel(model, device_id=place(rank)))
    by_parameter = losses(lambda model: fully_shard(model, mesh=init_device_mesh("npu", (RANKS,))))
    torch.testing.assert_close(sharded, alone)
    torch.testing.assert_close(by_parameter, alone)


CHECKS = [name for name in globals() if name.startswith("check_")]


@pytest.mark.parametrize("name", CHECKS)
def test_collectives(name: str, ranks: dict[str, list[list[str]]]) -> None:
    outcomes = [dict(line.split("\t", 1) for line in lines[STEPS:]) for lines in ranks["npu"]]
    assert [outcome.get(name, "did not run") for outcome in outcomes] == ["", ""]


def place(rank: int) -> Any:
    import torch

    return torch.device("npu", rank)


def run_checks(rank: int) -> None:
    import torch
    import torch.distributed as dist

    torch.npu.set_device(rank)  # type: ignore[attr-defined]
    for name in CHECKS:
        check: Callable[..., None] = globals()[name]
        try:
            check(dist, torch, rank)
        except Exception as error:  # noqa: BLE001 - it is the outcome
            line = traceback.extract_tb(error.__traceback__)[-1].line
            print(name, f"{type(error).__name__}: {error} ({line})".replace("\n", " "), sep="\t", flush=True)
        else:
            print(name, "", sep="\t", flush=True)


def train(device: str, rank: int) -> None:
    import torch

    torch.manual_seed(3)
    here = torch.device(device) if device == "cpu" else torch.device(device, rank)
    layers = [torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4)]
    model: Any = torch.nn.Sequential(*layers).to(here)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=None if device == "cpu" else [rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    x, y = torch.randn(2, 5, 8)[rank].to(here), torch.randint(0, 4, (2, 5))[rank].to(here)
    for _ in range(STEPS):
        loss: Any = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(loss.item())


def main(device: str, rank: int, folder: str) -> None:
    if device != "cpu":
        from codemods.rehearse.backend import install

        install(device)
    import torch.distributed as dist

    backend = "gloo" if device == "cpu" else BACKENDS[device]
    dist.init_process_group(backend, f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    train(device, rank)
    if device == "npu":
        run_checks(rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
