"""The target's collectives (``hccl``, ``cncl``, ...) as process groups over gloo.

A group hands the CPU tensors inside to gloo and answers with the tensors of the device. As on hardware it takes
tensors of the device only, unless it was made for both, as ``cpu:gloo,npu:hccl``.

DistributedDataParallel and both forms of FSDP work on it. The memory that FSDP would free is not counted as free: it
resizes storages below the level at which a device written in Python sees it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from codemods.rehearse.machine import Machine, machine
from codemods.rehearse.sites import current_site
from codemods.rehearse.tensor import DeviceTensor

_COLLECTIVES = (
    "all_gather_single_coalesced",
    "allgather",
    "allgather_coalesced",
    "allgather_into_tensor_coalesced",
    "allreduce_coalesced",
    "broadcast",
    "gather",
    "recv",
    "recv_anysource",
    "reduce",
    "scatter",
    "send",
)
"""Those that gloo does as they are."""

_Work: Any = distributed_c10d.Work
_Group: Any = dist.ProcessGroup


def register(here: Machine) -> None:
    """Makes the target's backend known to ``torch.distributed``."""
    if not dist.is_available():
        return
    name = here.known.backend
    dist.Backend.register_backend(name, _create, extended_api=True, devices=[here.kind])
    for module in (dist, distributed_c10d):
        setattr(module, f"is_{name}_available", lambda: True)
        for maker in ("init_process_group", "new_group"):
            setattr(module, maker, _noting_host(getattr(module, maker), name))


_takes_host: list[bool] = [False]


def _noting_host(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Notes whether the group that is being made is for tensors of the CPU as well."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        asked = [one for one in (*args, *kwargs.values()) if isinstance(one, str)]
        if function.__name__ == "init_process_group" or asked:
            _takes_host[0] = not any(one.lower() == name for one in asked)
        return function(*args, **kwargs)

    return call


def _create(options: Any, backend_options: Any) -> DeviceGroup:
    return DeviceGroup(options.store, options.group_rank, options.group_size, options.timeout, _takes_host[0])


class DeviceWork(_Work):  # type: ignore[misc]
    """A collective under way; it ends with what gloo's ends."""

    def __init__(self, works: list[Any], tensors: list[torch.Tensor], finish: Callable[[], None] | None) -> None:
        super().__init__()
        self.works, self.tensors, self.finish = works, tensors, finish
        self.done = False

    def wait(self, timeout: Any = None) -> bool:
        """Waits for the result to be there."""
        if not self.done:
            for one in self.works:
                one.wait()
            if self.finish is not None:
                self.finish()
            self.done = True
        return True

    def is_completed(self) -> bool:
        """Whether the result is there."""
        if not self.done and all(one.is_completed() for one in self.works):
            self.wait()
        return self.done

    def is_success(self) -> bool:
        """Whether the result is there."""
        return self.is_completed()

    def synchronize(self) -> None:
        """Waits."""
        self.wait()

    def result(self) -> list[torch.Tensor]:
        """The tensors that were written."""
        self.wait()
        return self.tensors

    def _source_rank(self) -> int:
        return int(self.works[0]._source_rank())

    def get_future(self) -> torch.futures.Future[Any]:
        """A future that holds the tensors that were written."""
        self.wait()
        future: torch.futures.Future[Any] = torch.futures.Future()
        future.set_result(self.tensors)
        return future


class DeviceGroup(_Group):  # type: ignore[misc]
    """A process group for tensors of the virtual device."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any, takes_host: bool) -> None:
        super().__init__(rank, size)
        self.takes_host = takes_host
        self._name = self._description = ""
        self.gloo = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
        self.host = _Group(store, rank, size)
        self.host._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
        self.host._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, self.gloo)
        self.gloo._set_sequence_number_for_group()

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device(machine().kind), *([torch.device("cpu")] if self.takes_host else [])]

    def _set_group_name(self, name: str) -> None:
        self._name = name
        self.host._set_group_name(name)

    @property
    def group_name(self) -> str:
        """The name under which torch knows the group."""
        return self._name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    @property
    def group_desc(self) -> str:
        """What the group is for."""
        return self._description

    def getBackendName(self) -> str:
        """The name of the backend."""
        return machine().known.backend

    def name(self) -> str:
        """The name of the backend."""
        return machine().known.backend

    def _get_backend(self, device: Any) -> Any:
        return self.gloo

    def _get_backend_name(self) -> str:
        return machine().known.backend

    def barrier(self, *args: Any, **kwargs: Any) -> Any:
        """Waits for all ranks."""
        return self._run("barrier", self.host.barrier, (), None)

    def monitored_barrier(self, *args: Any, **kwargs: Any) -> Any:
        """Waits for all ranks, and names those that do not come."""
        self.host.monitored_barrier(*args, **kwargs)

    def allreduce(self, tensors: Any, opts: Any = None, *rest: Any, **kwargs: Any) -> Any:
        """Reduces over the ranks, in place."""
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        op = kwargs.get("op", dist.ReduceOp.SUM) if opts is None else getattr(opts, "reduceOp", opts)
        return self._allreduce(tensors, op)

    def _allreduce(self, tensors: list[torch.Tensor], op: Any) -> Any:
        average = op == dist.ReduceOp.AVG
        options: Any = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp.SUM if average else op
        finish = (lambda: _divide(tensors, self.size())) if average else None
        return self._run("allreduce", self.host.allreduce, (tensors, options), tensors, finish)

    def all_gather_single(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Any:
        """Gathers the ranks' tensors one after the other in memory, whatever the shapes."""
        parts = list(output.view(-1).chunk(self.size()))
        return self._run("all_gather_single", self.host.allgather, ([parts], [source.reshape(-1)]), [output])

    def _allgather_base(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Any:
        return self.all_gather_single(output, source, opts)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None, *rest: Any, **kwargs: Any) -> Any:
        """Reduces over the ranks and leaves each its part."""
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        op = kwargs.get("op", dist.ReduceOp.SUM) if opts is None else getattr(opts, "reduceOp", opts)
        whole = [[one.clone() for one in parts] for parts in inputs]
        for one in (part for parts in whole for part in parts):  # gloo would add up tensors that are given together
            self._allreduce([one], op).wait()

        def finish() -> None:
            for output, parts in zip(outputs, whole, strict=True):
                output.copy_(parts[self.rank()])

        return DeviceWork([], list(outputs), finish)

    def _reduce_scatter_base(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Any:
        parts = [part.reshape(output.shape) for part in source.reshape(-1).chunk(self.size())]
        return self.reduce_scatter([output], [parts], opts)

    def reduce_scatter_single(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Any:
        """``reduce_scatter`` of the parts of one tensor."""
        return self._reduce_scatter_base(output, source, opts)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """``reduce_scatter_single`` of several tensors."""
        works = [self._reduce_scatter_base(*pair, opts) for pair in zip(outputs, inputs, strict=True)]
        return DeviceWork(works, list(outputs), None)

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """``reduce_scatter_single`` of several tensors."""
        return self.reduce_scatter_single_coalesced(outputs, inputs, opts)

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], *rest: Any, **kwargs: Any) -> Any:
        """Sends each rank its tensor."""
        self._check((outputs, inputs))
        me, works = self.rank(), []
        for other in range(self.size()):
            if other != me:
                works.append(self.host.send([_inner(inputs[other]).contiguous()], other, 0))
                works.append(self.host.recv([_inner(outputs[other])], other, 0))
        outputs[me].copy_(inputs[me])
        self._count("alltoall")
        return DeviceWork(works, outputs, None)

    def alltoall_base(
        self, output: torch.Tensor, source: torch.Tensor, output_sizes: Any, input_sizes: Any, *rest: Any, **kwargs: Any
    ) -> Any:
        """Sends each rank its rows."""
        arguments = (output, source, list(output_sizes), list(input_sizes))
        return self._run("alltoall_base", self.host.alltoall_base, arguments, [output])

    def all_to_all_single(self, *args: Any, **kwargs: Any) -> Any:
        """Sends each rank its rows."""
        return self.alltoall_base(*args, **kwargs)

    def _run(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        written: Any,
        finish: Callable[[], None] | None = None,
    ) -> Any:
        self._check(args)
        begin = time.perf_counter()
        work = function(*_inner(args))
        self._count(name, time.perf_counter() - begin)
        return DeviceWork([work], list(_tensors(args if written is None else written)), finish)

    def _check(self, args: Any) -> None:
        """Raises for tensors that the target's collectives do not take."""
        for one in _tensors(args):
            if not isinstance(one, DeviceTensor) and not self.takes_host:
                raise RuntimeError(
                    f"No backend type associated with device type {one.device.type}: the process group of "
                    f"{machine().known.backend} takes tensors of {machine().kind} ({current_site()})"
                )

    def _count(self, name: str, seconds: float = 0.0) -> None:
        use = machine().recording.operator(f"c10d::{name}")
        use.count += 1
        use.seconds += seconds
        site = current_site()
        use.sites[site] = use.sites.get(site, 0) + 1


def _delegating(name: str) -> Callable[..., Any]:
    def collective(self: DeviceGroup, *args: Any, **kwargs: Any) -> Any:
        return self._run(name, getattr(self.host, name), (*args, *kwargs.values()), None)

    collective.__name__ = name
    return collective


for _name in _COLLECTIVES:
    setattr(DeviceGroup, _name, _delegating(_name))


def _inner(value: Any) -> Any:
    if isinstance(value, DeviceTensor):
        return value.host
    if isinstance(value, (list, tuple)):
        return type(value)(_inner(one) for one in value)
    return value


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in _tensors(one)]
    return []


def _divide(tensors: list[torch.Tensor], size: int) -> None:
    with torch.no_grad():
        for one in tensors:
            _inner(one).div_(size)
