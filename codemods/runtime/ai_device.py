# uncuda helper unstamped
"""The device that this program runs on, chosen by the environment variable ``AI_DEVICE``.

===================  ===========================================================================================
``AI_DEVICE``        what the program runs on
===================  ===========================================================================================
unset or empty       CUDA, exactly as ``torch.cuda`` and ``.cuda()`` do it, on a machine without CUDA too
``npu``, ``mlu:1``   that device; an index is optional, vendors' names work too (``ascend``, ``cambricon``, ...)
``cpu``              the CPU: streams, events and memory queries become harmless, autocast and scaling are off
``auto``             the first accelerator that is there, else the CPU
===================  ===========================================================================================

A device that is asked for and not there is an error, never a silent fallback.

An index in the code wins over the index in ``AI_DEVICE``, and where a launcher sets ``LOCAL_RANK`` the latter counts
for nothing; both with one warning. Otherwise the index in ``AI_DEVICE`` is that of the current device.

Indices in ``CUDA_VISIBLE_DEVICES`` choose among the devices of the selected type, as they do with CUDA, unless the
variable of that device (``ASCEND_RT_VISIBLE_DEVICES``, ...) is set. It holds if set before the device is first used.

Functions with the name of a function of ``torch.cuda`` do on the selected device what that one does on CUDA. What a
device lacks does nothing where ``torch.cuda`` does nothing on a machine without GPU, and is an error elsewhere.

Nothing here touches a device or imports a vendor's plugin before it is called, so importing this file is safe before a
fork. It needs Python 3.8 and torch 1.13 or newer.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import itertools
import operator
import os
import sys
import threading
import time
import types
import warnings
from typing import Any, ContextManager, Iterable, Iterator, NamedTuple

import torch

_TORCH = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


class _Device(NamedTuple):
    """What is known of one vendor's devices; a version says since which torch, '' means always."""

    type: str
    title: str
    aliases: str
    namespace: str = ""  # the module with the functions, '' for torch.<type>
    plugin: str = ""  # the package that brings the device to torch
    plugin_until: str = ""  # from this torch on the plugin is not needed
    install: str = ""
    monitor: str = ""  # the vendor's command that shows the state of its devices
    mask: str = ""  # what the device reads in place of CUDA_VISIBLE_DEVICES, if that needs to be told
    backend: str = "nccl"  # of torch.distributed
    backend_import: str = ""  # the module that registers it
    backend_since: str = ""
    older_backend: str = ""
    older_backend_import: str = ""
    autocast: str = "float16"  # default dtype
    autocast_since: str = ""
    grad_scaler: str = "torch"  # or 'vendor', or 'none'
    grad_scaler_since: str = ""
    pin_memory: bool = True
    legacy_tensors: bool = True  # torch.<type>.FloatTensor and the like
    profiler_activity: str = "CUDA"  # names, best first
    single_device: bool = False  # there is only one, without an index
    host_memory: bool = False  # its memory is that of the machine
    auto: bool = True  # AI_DEVICE=auto may choose it
    compile_backend: str = "inductor"  # of torch.compile, '' where it has none
    compile_since: str = ""


# >>> device table, generated
# fmt: off
_DEVICES = (
    _Device(
        type="cuda", title="NVIDIA GPU", aliases="nvidia cuda nv a100 a800 h100 h800 h20 l40 b200 v100",
        install="a CUDA build of torch", monitor="nvidia-smi"),
    _Device(
        type="cuda", title="AMD GPU (ROCm)",
        aliases="amd rocm hip mi100 mi210 mi250 mi300 mi300x mi325 mi350 instinct radeon amd_rocm",
        install="a ROCm build of torch", monitor="rocm-smi"),
    _Device(
        type="mps", title="Apple GPU", aliases="mps apple metal m1 m2 m3 m4 mac apple_mps",
        install="torch for macOS on Apple silicon", backend="gloo", autocast_since="2.5", grad_scaler_since="2.8",
        pin_memory=False, legacy_tensors=False, single_device=True, host_memory=True, compile_since="2.8",
        profiler_activity=""),
    _Device(
        type="npu", title="Huawei Ascend NPU",
        aliases="ascend npu huawei hw cann atlas 910a 910b 910c 950dt 昇腾 shengteng", plugin="torch_npu",
        install="pip install torch-npu, in the version that matches torch", monitor="npu-smi", backend="hccl",
        grad_scaler="vendor", compile_since="2.7", mask="ASCEND_RT_VISIBLE_DEVICES",
        profiler_activity="NPU PrivateUse1"),
    _Device(
        type="supa", title="Biren GPU", aliases="biren supa birensupa br100 br104 br106 br166 br2xx 壁仞 bi_ren",
        plugin="torch_supa",
        install="the torch_supa wheel of the vendor (torch_supa-1.0.0.<torch>+br2xx), on the CPU build of torch",
        backend="bccl", grad_scaler="vendor", mask="SUPA_VISIBLE_DEVICES", profiler_activity="SUPA PrivateUse1"),
    _Device(
        type="mlu", title="Cambricon MLU", aliases="cambricon mlu mlu370 mlu590 mlu580 neuware bang 寒武纪 hanwuji",
        plugin="torch_mlu", install="the torch_mlu wheel of the vendor that matches torch (torch_mlu-X+torchY)",
        monitor="cnmon", backend="cncl", compile_backend="", profiler_activity="MLU PrivateUse1"),
    _Device(
        type="gcu", title="Enflame GCU", aliases="enflame gcu tops topsrider s60 l600 t20 i20 燧原 suiyuan",
        plugin="torch_gcu", install="torch_gcu from the vendor's TopsRider package", monitor="efsmi", backend="eccl",
        grad_scaler="vendor", mask="TOPS_VISIBLE_DEVICES", profiler_activity="GCU PrivateUse1"),
    _Device(
        type="hpu", title="Intel Gaudi HPU", aliases="gaudi gaudi2 gaudi3 hpu habana synapse",
        plugin="habana_frameworks.torch", install="habana-torch-plugin from the vendor's Gaudi software",
        monitor="hl-smi", backend="hccl", backend_import="habana_frameworks.torch.distributed.hccl", grad_scaler="none",
        compile_backend="hpu_backend", autocast="bfloat16", profiler_activity="HPU"),
    _Device(
        type="cuda", title="Hygon DCU",
        aliases="dcu hygon dtk hcu k100 k100_ai z100 bw bw1000 海光 haiguang sugon hygon_dcu",
        install="the ROCm/DTK build of torch of the vendor", monitor="hy-smi", compile_backend=""),
    _Device(
        type="cuda", title="Iluvatar CoreX GPU",
        aliases="iluvatar corex ixuca bi bi100 bi150 bi-v100 bi-v150 mr-v100 天数智芯 tianshu",
        install="the torch X+corex.Y build of the vendor", monitor="ixsmi", compile_backend=""),
    _Device(
        type="xpu", title="Intel GPU",
        aliases="xpu intel intel_gpu arc pvc max1550 bmg battlemage oneapi sycl intel_xpu",
        plugin="intel_extension_for_pytorch", plugin_until="2.5", install="the xpu build of torch 2.5 or newer",
        monitor="xpu-smi", backend="xccl", backend_since="2.6", older_backend="ccl",
        older_backend_import="oneccl_bindings_for_pytorch", grad_scaler_since="2.3", legacy_tensors=False,
        mask="ZE_AFFINITY_MASK", profiler_activity="XPU"),
    _Device(
        type="cuda", title="Kunlunxin XPU",
        aliases="kunlun kunlunxin klx xmlir p800 r200 r300 r310p k200 昆仑芯 baidu_xpu", plugin="torch_xmlir",
        install="the xpytorch installer of the vendor", monitor="xpu-smi", compile_backend=""),
    _Device(
        type="cuda", title="MetaX GPU", aliases="metax maca mxmaca mxgpu mxc500 c500 c550 c588 n260 沐曦 muxi",
        install="the MACA build of torch of the vendor", monitor="mx-smi"),
    _Device(
        type="musa", title="Moore Threads GPU",
        aliases="moorethreads moore_threads mthreads musa mtt mtgpu s80 s3000 s4000 s5000 m1000 摩尔线程 moer",
        plugin="torch_musa", install="the torch_musa wheel of the vendor, together with its patched torch",
        monitor="mthreads-gmi", backend="mccl", mask="MUSA_VISIBLE_DEVICES", profiler_activity="MUSA PrivateUse1"),
    _Device(
        type="cuda", title="T-Head PPU",
        aliases="ppu thead t-head t_head zhenwu 真武 平头哥 pingtouge 810e aliyun_ppu thead_ppu",
        install="the torch build of the vendor's PPU SDK", monitor="ppu-smi", compile_backend=""),
    _Device(
        type="xla", title="Google TPU (XLA)", aliases="tpu xla google v4 v5e v5p v6e xla_tpu", namespace="torch_xla",
        plugin="torch_xla", install="pip install torch-xla", backend="xla",
        backend_import="torch_xla.distributed.xla_backend", grad_scaler="none", pin_memory=False, legacy_tensors=False,
        single_device=True, auto=False, compile_backend="openxla", autocast="bfloat16", profiler_activity=""),
)
# fmt: on
# <<< device table

_CPU = _Device(
    "cpu",
    "CPU",
    "cpu",
    monitor="top",
    backend="gloo",
    pin_memory=False,
    profiler_activity="CPU",
    single_device=True,
    host_memory=True,
)


# -- The selection -------------------------------------------------------------------------------------------------


class _Selection(NamedTuple):
    device: _Device
    value: str  # of AI_DEVICE, '' if unset
    number: int | None  # the index in it


_selections: dict[str, _Selection] = {}  # by the value of AI_DEVICE
_thread = threading.local()  # .current: the selection made current in this thread; .guards: open guards
_warned: set[str] = set()
_index_set_by_code = False


def _selected() -> _Selection:
    value = os.environ.get("AI_DEVICE", "").strip()
    selection = _selections.get(value)
    if selection is None:
        selection = _selections[value] = _select(value)
    return selection


def _select(value: str) -> _Selection:
    if not value:
        return _Selection(_DEVICES[0], value, None)
    if value.lower() == "auto":
        return _Selection(_first_present(), value, None)
    known, index = _parse(value)
    if known.single_device:
        index = None
    if known is not _CPU:
        _load(known, value)
        _check_index(known, index, value)
    return _Selection(known, value, index)


def _parse(value: str) -> tuple[_Device, int | None]:
    name, colon, index = (part.strip() for part in value.lower().partition(":"))
    for known in (_CPU, *_DEVICES):
        if name in known.aliases.split():
            if not colon:
                return known, None
            if index.isascii() and index.isdigit():
                return known, int(index)
    names = ", ".join(dict.fromkeys(known.type for known in _DEVICES))
    raise RuntimeError(
        f"AI_DEVICE={value!r} names no device. Accepted are 'auto', 'cpu', and a name with an optional index such as "
        f"'npu' or 'npu:1'. The names are {names}, and vendors' names such as ascend or cambricon. "
        "Leave AI_DEVICE unset for CUDA."
    )


def _load(known: _Device, value: str) -> None:
    """Imports the device's plugin and makes sure that a device is there."""
    _pass_mask_on(known)
    try:
        if _needs_plugin(known):
            importlib.import_module(known.plugin)
    except (ImportError, OSError, RuntimeError) as error:
        if not _is_present(known):
            raise RuntimeError(
                f"AI_DEVICE={value!r} asks for {known.title}, which needs the package {known.plugin}, and its import "
                f"failed: {error}. To install: {known.install}. Found here: {_found()}."
            ) from error
    if not _is_present(known):
        raise RuntimeError(
            f"AI_DEVICE={value!r} asks for {known.title}, and torch {torch.__version__} finds no {known.type} device. "
            f"Found here: {_found()}. It needs {known.install}; {known.monitor or 'its driver'} shows the devices."
        )
    _check_mask(known)


def _pass_mask_on(known: _Device) -> None:
    """Gives the indices in ``CUDA_VISIBLE_DEVICES`` to the device, by its own variable unless that is set."""
    _take_mask_back(known)  # a child may be started with another CUDA_VISIBLE_DEVICES than its parent
    if not known.mask or known.mask in os.environ:
        return
    mask = os.environ.get("CUDA_VISIBLE_DEVICES", "").replace(" ", "")
    parts = mask.split(",")
    indices = [int(part) for part in parts if part.isascii() and part.isdigit()]
    if len(indices) == len(parts) and indices == sorted(set(indices)):
        os.environ[known.mask] = mask
        os.environ["AI_DEVICE_MASK"] = f"{known.mask}={mask}"


def _take_mask_back(known: _Device) -> None:
    """Unsets the device's variable if this file has set it, in this process or in one that started it."""
    if _mask_is_passed_on(known):
        del os.environ[known.mask], os.environ["AI_DEVICE_MASK"]


def _mask_is_passed_on(known: _Device) -> bool:
    own = os.environ.get(known.mask)
    return own is not None and os.environ.get("AI_DEVICE_MASK") == f"{known.mask}={own}"


def _check_mask(known: _Device) -> None:
    """Says where ``CUDA_VISIBLE_DEVICES`` does not choose among the devices."""
    mask = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not mask or not known.mask:
        return
    if known.mask not in os.environ:
        _warn_once(
            f"CUDA_VISIBLE_DEVICES={mask!r} is not passed on to {known.type}, which takes indices in ascending order: "
            f"{known.mask} chooses its devices, and AI_DEVICE=cpu the CPU."
        )
    elif _mask_is_passed_on(known):
        count = getattr(_namespace(known), "device_count", None)
        if count is not None and count() > os.environ[known.mask].count(",") + 1:
            _warn_once(
                f"CUDA_VISIBLE_DEVICES={mask!r} comes too late for {known.type}, which was in use before: all its "
                f"devices are visible. Set {known.mask} where the program is started."
            )


def _check_index(known: _Device, index: int | None, value: str) -> None:
    count = getattr(_namespace(known), "device_count", None)
    if index is not None and count is not None and index >= count():
        raise RuntimeError(f"AI_DEVICE={value!r}: this machine has {count()} {known.type} device(s), counted from 0.")


def _first_present() -> _Device:
    # Devices with a plugin first: some plugins make torch.cuda say that it is available.
    for known in sorted(_DEVICES, key=lambda device: not device.plugin):
        if not known.auto or (_needs_plugin(known) and importlib.util.find_spec(known.plugin.split(".")[0]) is None):
            continue
        try:
            _load(known, "auto")
        except RuntimeError:
            _take_mask_back(known)
            continue
        return known
    return _CPU


def _needs_plugin(known: _Device) -> bool:
    return bool(known.plugin) and not (known.plugin_until and _torch_is(known.plugin_until))


def _is_present(known: _Device) -> bool:
    namespace = _namespace(known)
    if known.type == "cuda":
        return bool(namespace.device_count() > 0)  # is_available() may start CUDA, and that forbids a fork
    probe = getattr(namespace, "is_available", None) or getattr(
        getattr(torch.backends, known.type, None), "is_available", None
    )
    return bool(probe()) if probe else namespace is not None


def _found() -> str:
    kinds = dict.fromkeys(known.type for known in _DEVICES if known.auto and _is_present(known))
    return ", ".join([*kinds, "cpu"])


def _namespace(known: _Device) -> Any:
    """The module with the functions of the device; None for the CPU and for what torch does not know."""
    if known.namespace:
        return sys.modules.get(known.namespace)
    return None if known is _CPU else getattr(torch, known.type, None)


def _torch_is(version: str) -> bool:
    """Whether torch is of this version or newer; '' is older than every torch."""
    return not version or _TORCH >= tuple(int(part) for part in version.split("."))


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=3)


# -- Indices -------------------------------------------------------------------------------------------------------


def _default_index(selected: _Selection) -> int | None:
    """The index in ``AI_DEVICE``, unless the code or the launcher has chosen one."""
    if selected.number is None or _index_set_by_code or getattr(_thread, "guards", 0) > 0:
        return None
    if os.environ.get("LOCAL_RANK"):
        _warn_once(f"AI_DEVICE={selected.value!r}: the index is ignored, because LOCAL_RANK is set.")
        return None
    return selected.number


def _use_default_index(selected: _Selection) -> None:
    """Makes the index in ``AI_DEVICE`` current in this thread, once."""
    index = _default_index(selected)
    if index is not None and getattr(_thread, "current", None) != selected.value:
        _namespace(selected.device).set_device(index)
        _thread.current = selected.value


def _code_wants(selected: _Selection, index: int | None) -> None:
    differs = index is not None and selected.number is not None and index != selected.number
    if differs and not os.environ.get("LOCAL_RANK"):
        _warn_once(f"AI_DEVICE={selected.value!r}: the index is not used where the code gives one.")


def _as_device(place: Any) -> torch.device:
    """Reads what ``.cuda()`` takes: an index means CUDA."""
    if isinstance(place, torch.device):
        return place
    if isinstance(place, bool):
        raise TypeError("a device is given by an index, a name or a torch.device, not by a bool")
    if isinstance(place, str) and not place.isdigit():
        return torch.device(place)
    return torch.device("cuda", int(place) if isinstance(place, str) else operator.index(place))


def _translated(argument: Any) -> Any:
    """A CUDA device among the arguments of a call, on the selected device; anything else as it is."""
    is_cuda = argument.split(":")[0] == "cuda" if isinstance(argument, str) else False
    return device(argument) if is_cuda or isinstance(argument, torch.device) else argument


# -- Which device --------------------------------------------------------------------------------------------------


def device(index: Any = None) -> torch.device:
    """The selected device.

    ``index`` is what ``.cuda()`` takes: nothing, an index (also as a string), a name or a ``torch.device``. A CUDA
    device becomes the selected one, with its index; ``cpu`` and other types stay what they are. ``cpu`` and ``mps``
    have no index.
    """
    selected = _selected()
    wanted = torch.device("cuda") if index is None else _as_device(index)
    if wanted.type != "cuda":
        return wanted
    number = wanted.index
    if number is None:
        number = _default_index(selected)
    else:
        _code_wants(selected, number)
    if number is None or selected.device.single_device:
        return torch.device(selected.device.type)
    return torch.device(selected.device.type, number)


def device_type() -> str:
    """The type of the selected device, without an index: 'cuda', 'npu', 'cpu', ..."""
    return _selected().device.type


def available_device(index: Any = None) -> torch.device:
    """What ``"cuda" if torch.cuda.is_available() else "cpu"`` chose; with ``AI_DEVICE`` set that device."""
    if not _selected().value and not torch.cuda.is_available():
        return torch.device("cpu")
    return device(index)


def is_available() -> bool:
    """Whether an accelerator is selected and there: False for ``AI_DEVICE=cpu``."""
    selected = _selected()
    return selected.device is not _CPU if selected.value else torch.cuda.is_available()


def is_usable() -> bool:
    """Whether the selected device can be used: like ``is_available()``, but True for ``AI_DEVICE=cpu``."""
    return bool(_selected().value) or torch.cuda.is_available()


def device_count() -> int:
    """How many devices of the selected type there are; 1 for ``AI_DEVICE=cpu``."""
    selected = _selected()
    return int(getattr(_namespace(selected.device), "device_count", lambda: 1)())


def current_device() -> int:
    """The index of the current device; 0 on cpu and mps."""
    return 0 if _selected().device.single_device else int(_call("current_device"))


def set_device(device: Any) -> None:
    """Makes a device current; nothing on cpu and mps."""
    global _index_set_by_code
    selected = _selected()
    if selected.device.single_device:
        return
    if selected.number is not None and not (isinstance(device, int) and device < 0):  # -1 changes nothing
        _code_wants(selected, _as_device(device).index)
        _index_set_by_code = True
    _call("set_device", device)


def device_guard(target: Any) -> ContextManager[Any]:
    """``torch.cuda.device(target)``, or for a tensor ``torch.cuda.device_of(target)``; nothing for the CPU."""
    selected = _selected()
    place = target.device if hasattr(target, "is_cuda") else target
    if not selected.value and place is not target:
        guard: ContextManager[Any] = torch.cuda.device_of(target)  # type: ignore[no-untyped-call]
        return guard
    if place is None or selected.device.single_device:
        return contextlib.nullcontext()
    if isinstance(place, (str, torch.device)):
        place = device(place)
        if place.type != selected.device.type:
            return contextlib.nullcontext()
    guard = _namespace(selected.device).device(place)
    return guard if selected.number is None else _index_from_code(guard)


@contextlib.contextmanager
def _index_from_code(guard: ContextManager[Any]) -> Iterator[None]:
    _thread.guards = getattr(_thread, "guards", 0) + 1
    try:
        with guard:
            yield
    finally:
        _thread.guards -= 1


# -- Where torch takes a device by another name --------------------------------------------------------------------


def backend(spec: str | None = None) -> str:
    """The collective backend of the selected device: 'nccl', 'hccl', 'gloo', ...

    With a ``spec`` such as ``"cpu:gloo,cuda:nccl"`` the same string for the selected device.
    """
    selected = _selected()
    known = selected.device
    name, module = known.backend, known.backend_import
    if not _torch_is(known.backend_since):
        name, module = known.older_backend, known.older_backend_import
    if module:
        importlib.import_module(module)  # registers the backend with torch.distributed
    if spec is None or spec == "nccl":
        return name
    if known.type == "cuda":
        return spec
    entries = (f"{known.type}:{name}" if e.strip().startswith("cuda:") else e.strip() for e in spec.split(","))
    return ",".join(dict.fromkeys(entries))


def available_backend() -> str:
    """The backend of the selected device where this build of torch has it, else ``gloo``.

    What ``"nccl" if torch.distributed.is_nccl_available() else "gloo"`` chooses for CUDA.
    """
    name = backend()
    distributed = torch.distributed
    known = getattr(distributed, f"is_{name}_available", None)
    if known is not None:
        return name if known() else "gloo"
    registered = getattr(distributed.Backend, name.upper(), None)
    return name if registered is not None else "gloo"


def device_ids(*indices: Any) -> list[Any] | None:
    """The ``device_ids`` of DistributedDataParallel and the like: None on cpu and mps, as they want it there."""
    return None if _selected().device.single_device else [_translated(index) for index in indices]


def output_device(index: Any) -> Any:
    """The ``output_device`` of DistributedDataParallel and the like: None on cpu and mps."""
    return None if _selected().device.single_device else _translated(index)


def device_id(index: Any) -> torch.device | None:
    """The ``device_id`` of ``init_process_group``: None on cpu and mps."""
    return None if _selected().device.single_device else device(index)


def device_name(name: str) -> str:
    """The name of a device as a user gives it: a CUDA device becomes the selected one, anything else stays.

    The ``type`` of a command-line option for a device, so that ``--device cuda`` means the selected device.
    """
    kind, _, index = name.partition(":")
    return str(device(name)) if kind == "cuda" and (not index or index.isdigit()) else name


def device_choices(choices: Iterable[str]) -> list[str]:
    """Names for a command line to choose from, with the selected type among them."""
    return list(dict.fromkeys([*choices, device_type()]))


def backend_choices(choices: Iterable[str]) -> list[str]:
    """The backends that a program accepts on its command line, and the one of the selected device."""
    return list(dict.fromkeys([*choices, backend()]))


def devices(names: Iterable[Any]) -> list[Any]:
    """A list of devices, such as those of a parametrised test, with CUDA's replaced by the selected one, each once.

    Strings stay strings, and what is no string stays what it is. Whether the device is there is not asked.
    """
    value = os.environ.get("AI_DEVICE", "").strip()
    if not value:
        return list(names)
    known = _selected().device if value.lower() == "auto" else _parse(value)[0]
    replaced: list[Any] = []
    for name in names:
        kind, colon, index = name.partition(":") if isinstance(name, str) else ("", "", "")
        if kind == "cuda":
            name = known.type if known.single_device else known.type + colon + index
        if not isinstance(name, str) or name not in replaced:
            replaced.append(name)
    return replaced


def map_location() -> Any:
    """The ``map_location`` of a ``torch.load`` that had none.

    None on CUDA, where the call is as it was. Elsewhere a function: what was saved on a CUDA device goes to the
    selected one, what was saved on the CPU (a random-number state, say) stays there.
    """
    return None if device_type() == "cuda" else _restore_from_cuda


def _restore_from_cuda(storage: Any, location: str) -> Any:
    if not location.startswith("cuda"):
        return None  # torch restores it where it was
    return torch.serialization.default_restore_location(storage, str(device()))  # type: ignore[no-untyped-call]


def profiler_activity() -> Any:
    """The ``torch.profiler.ProfilerActivity`` of the selected device; CPU where it has none."""
    activities = torch.profiler.ProfilerActivity
    names = _selected().device.profiler_activity.split()
    return next((getattr(activities, name) for name in names if hasattr(activities, name)), activities.CPU)


def pin_memory(tensor: Any) -> Any:
    """``tensor.pin_memory()``; the tensor itself where pinning does not help."""
    selected = _selected()
    if not selected.device.pin_memory:
        return tensor
    if _torch_is("2.7") or selected.device.type == "cuda" or not isinstance(tensor, torch.Tensor):
        return tensor.pin_memory()
    return tensor.pin_memory(selected.device.type)  # older torch pins for CUDA unless told otherwise


def pin_memory_device() -> str:
    """The ``pin_memory_device`` of a DataLoader; '' where torch finds out by itself or cannot pin."""
    selected = _selected()
    if not selected.value:
        return "cuda"
    return "" if _torch_is("2.7") or not selected.device.pin_memory else selected.device.type


# -- Mixed precision -----------------------------------------------------------------------------------------------


def autocast(enabled: bool = True, dtype: torch.dtype | None = None, cache_enabled: bool = True) -> torch.autocast:
    """``torch.cuda.amp.autocast`` for the selected device; disabled on the CPU, as that is without CUDA."""
    known = _selected().device
    if known is not _CPU and _torch_is(known.autocast_since):
        dtype = getattr(torch, known.autocast) if dtype is None else dtype
        return torch.autocast(known.type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
    if known is not _CPU and enabled:
        _warn_once(f"autocast on {known.type} needs torch {known.autocast_since}: it is disabled.")
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=False, cache_enabled=cache_enabled)


_Scaler: Any = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler


class GradScaler(_Scaler):  # type: ignore[misc]
    """``torch.cuda.amp.GradScaler`` for the selected device; disabled where gradients are not scaled.

    Where the vendor has a scaler of its own, the call gives one of those.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """The vendor's scaler, or an instance of this class."""
        vendors = _vendors_scaler()
        if cls is not GradScaler or vendors is None:
            return super().__new__(cls)
        names = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")
        return vendors(**dict(zip(names, args)), **kwargs)  # noqa: B905 - strict is for Python 3.10

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        known = _selected().device
        if enabled and not _scales_gradients(known):
            enabled = False
            if known is not _CPU:
                _warn_once(
                    f"GradScaler: torch {torch.__version__} does not scale gradients on {known.type}. Disabling."
                )
        kind = [known.type] if hasattr(torch.amp, "GradScaler") else []
        super().__init__(
            *kind,
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )


def _vendors_scaler() -> Any:
    known = _selected().device
    if known.grad_scaler == "vendor" or (known.type != "cuda" and not _torch_is("2.3")):
        return getattr(getattr(_namespace(known), "amp", None), "GradScaler", None)
    return None


def _scales_gradients(known: _Device) -> bool:
    if known.type == "cuda":
        return True
    return known is not _CPU and known.grad_scaler != "none" and _torch_is(known.grad_scaler_since or "2.3")


def custom_fwd(fwd: Any = None, *, cast_inputs: torch.dtype | None = None) -> Any:
    """``torch.cuda.amp.custom_fwd`` for the selected device."""
    if fwd is None:
        return functools.partial(custom_fwd, cast_inputs=cast_inputs)
    return _decorated_when_called("custom_fwd", fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """``torch.cuda.amp.custom_bwd`` for the selected device."""
    return _decorated_when_called("custom_bwd", bwd)


def _decorated_when_called(decorator: str, function: Any, **options: Any) -> Any:
    """Decorates at the first call, because a class body runs when its module is imported."""
    decorated: dict[str, Any] = {}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kind = device_type()
        if kind not in decorated:
            decorated[kind] = _decorate(decorator, function, options)
        return decorated[kind](*args, **kwargs)

    return call


def _decorate(decorator: str, function: Any, options: dict[str, Any]) -> Any:
    if hasattr(torch.amp, decorator):
        return getattr(torch.amp, decorator)(function, device_type=device_type(), **options)
    vendors = getattr(_namespace(_selected().device), "amp", None)
    return getattr(vendors if hasattr(vendors, decorator) else torch.cuda.amp, decorator)(function, **options)


def is_autocast_enabled() -> bool:
    """``torch.is_autocast_enabled()`` for the selected device."""
    return bool(_autocast_state("is_autocast_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled"))


def get_autocast_dtype() -> torch.dtype:
    """``torch.get_autocast_gpu_dtype()`` for the selected device."""
    dtype: torch.dtype = _autocast_state("get_autocast_dtype", "get_autocast_gpu_dtype", "get_autocast_cpu_dtype")
    return dtype


def set_autocast_enabled(enabled: bool) -> None:
    """``torch.set_autocast_enabled(enabled)`` for the selected device."""
    _autocast_state("set_autocast_enabled", "set_autocast_enabled", "set_autocast_cpu_enabled", enabled)


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """``torch.set_autocast_gpu_dtype(dtype)`` for the selected device."""
    _autocast_state("set_autocast_dtype", "set_autocast_gpu_dtype", "set_autocast_cpu_dtype", dtype)


def _autocast_state(name: str, on_cuda: str, on_cpu: str, *value: Any) -> Any:
    known = _selected().device
    if _torch_is("2.4"):
        return getattr(torch, name)(known.type, *value)
    if known.type in ("cuda", "cpu"):
        return getattr(torch, on_cuda if known.type == "cuda" else on_cpu)(*value)
    return _call(name, *value)


# -- Calls that go to the functions of the selected device ---------------------------------------------------------

_NOTHING = object()


def _native(selected: _Selection, *names: str) -> Any:
    """The device's function of the first of these names that it has, else None."""
    namespace = _namespace(selected.device)
    return next((getattr(namespace, name) for name in names if hasattr(namespace, name)), None)


def _call(name: str, *args: Any, others: tuple[str, ...] = (), instead: str = "", **kwargs: Any) -> Any:
    """Calls ``torch.<type>.<name>``, or one of the others where the device lacks it; an error if it lacks all."""
    selected = _selected()
    if not selected.value:
        return getattr(torch.cuda, name)(*args, **kwargs)
    native = _native(selected, name, *others)
    if native is None:
        instead = instead or f"look at {selected.device.monitor or 'the tools of its vendor'}"
        raise RuntimeError(f"{selected.device.type} has no {name}() in torch {torch.__version__}: {instead}.")
    _use_default_index(selected)
    return native(*map(_translated, args), **{key: _translated(value) for key, value in kwargs.items()})


def _forward(
    name: str, *others: str, before: int = 0, host: Any = _NOTHING, default: Any = _NOTHING, instead: str = ""
) -> Any:
    """Makes the function ``torch.cuda.<name>`` for the selected device.

    Where the device lacks it, it calls one of the ``others``; where it lacks these too, it gives ``host`` on devices
    without an index (cpu, mps) or ``default`` on all: a value, or a function of the ``before`` arguments that come
    before the device.
    """

    def function(*args: Any, **kwargs: Any) -> Any:
        selected = _selected()
        own_args, own_kwargs = args[:before], {key: kwargs[key] for key in kwargs if key != "device"}
        if selected.value and _native(selected, name, *others) is None:
            result = host if selected.device.single_device and host is not _NOTHING else default
            if result is not _NOTHING:
                return result(*own_args, **own_kwargs) if callable(result) else result
        if selected.value and selected.device.single_device:
            args, kwargs = own_args, own_kwargs
        return _call(name, *args, others=others, instead=instead, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``torch.cuda.{name}`` for the selected device."
    return function


synchronize = _forward("synchronize", "sync", host=None)
empty_cache = _forward("empty_cache", default=None)
ipc_collect = _forward("ipc_collect", default=None)
init = _forward("init", default=None)
get_device_name = _forward("get_device_name", default=device_type)
can_device_access_peer = _forward("can_device_access_peer", default=False)

memory_allocated = _forward("memory_allocated", "current_allocated_memory", default=0)
max_memory_allocated = _forward("max_memory_allocated", default=0)
memory_reserved = _forward("memory_reserved", "driver_allocated_memory", default=0)
max_memory_reserved = _forward("max_memory_reserved", default=0)
memory_cached = _forward("memory_cached", "memory_reserved", "driver_allocated_memory", default=0)
max_memory_cached = _forward("max_memory_cached", "max_memory_reserved", default=0)
memory_stats = _forward("memory_stats", default=dict)
memory_summary = _forward("memory_summary", default="")
memory_snapshot = _forward("memory_snapshot", default=list)
list_gpu_processes = _forward("list_gpu_processes", default="the processes on this device are not known")
reset_peak_memory_stats = _forward("reset_peak_memory_stats", default=None)
reset_accumulated_memory_stats = _forward("reset_accumulated_memory_stats", default=None)
reset_max_memory_allocated = _forward("reset_max_memory_allocated", "reset_peak_memory_stats", default=None)
reset_max_memory_cached = _forward("reset_max_memory_cached", "reset_peak_memory_stats", default=None)
set_per_process_memory_fraction = _forward("set_per_process_memory_fraction", before=1, host=lambda fraction: None)

utilization = _forward("utilization")
memory_usage = _forward("memory_usage")
temperature = _forward("temperature")
power_draw = _forward("power_draw")
clock_rate = _forward("clock_rate")

# On the CPU the random numbers are those of its own generator.
_generator = torch.default_generator
manual_seed = _forward("manual_seed", before=1, host=lambda seed: _generator.manual_seed(int(seed)))
manual_seed_all = _forward("manual_seed_all", "manual_seed", before=1, host=lambda seed: manual_seed(seed))
seed = _forward("seed", host=_generator.seed)
seed_all = _forward("seed_all", "seed", host=_generator.seed)
initial_seed = _forward("initial_seed", host=_generator.initial_seed)
get_rng_state = _forward("get_rng_state", host=torch.get_rng_state)
set_rng_state = _forward("set_rng_state", before=1, host=torch.set_rng_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all selected devices; [] on the CPU, whose state ``torch.get_rng_state()`` gives."""
    selected = _selected()
    if selected.device.single_device:
        return [] if selected.device is _CPU else [get_rng_state()]
    return list(_call("get_rng_state_all"))


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all selected devices; nothing on the CPU."""
    selected = _selected()
    if not selected.device.single_device:
        _call("set_rng_state_all", new_states)
    elif selected.device is not _CPU:
        for state in list(new_states)[:1]:
            set_rng_state(state)


def fork_rng(devices: Any = None, enabled: bool = True, device_type: str | None = None) -> ContextManager[Any]:
    """``torch.random.fork_rng`` for the selected device; the state of the CPU is always restored."""
    selected = _selected()
    kind = device_type or ""
    if selected.value and kind in ("", "cuda"):
        kind = selected.device.type
        if selected.device.single_device:
            devices = [0] if hasattr(getattr(torch, kind, None), "get_rng_state") else []
        elif devices is not None:
            devices = [_translated(one) for one in devices]
    options: Any = {"device_type": kind} if kind not in ("", "cuda") and devices != [] else {}
    return torch.random.fork_rng(devices, enabled, **options)


def is_initialized() -> bool:
    """``torch.cuda.is_initialized`` for the selected device; False where there is nothing to initialise."""
    native = _native(_selected(), "is_initialized")
    return bool(native()) if native else False


def is_bf16_supported(*args: Any, **kwargs: Any) -> bool:
    """``torch.cuda.is_bf16_supported`` for the selected device."""
    selected = _selected()
    if not selected.value or _native(selected, "is_bf16_supported"):
        return bool(_call("is_bf16_supported", *args, **kwargs))
    try:
        torch.ones(1, dtype=torch.bfloat16, device=device())
    except (RuntimeError, TypeError):
        return False
    return True


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """NVIDIA's compute capability; (0, 0) on devices that are not CUDA, so that tests for it stay off."""
    if device_type() != "cuda":
        return 0, 0
    major, minor = _call("get_device_capability", device)
    return major, minor


def get_device_properties(device: Any = None) -> Any:
    """``torch.cuda.get_device_properties`` for the selected device; on cpu and mps some of the machine."""
    known = _selected().device
    if not known.host_memory:
        return _call("get_device_properties", device)
    total, cores = _pages("SC_PHYS_PAGES"), os.cpu_count() or 1
    return types.SimpleNamespace(name=known.type, major=0, minor=0, total_memory=total, multi_processor_count=cores)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total memory of a device in bytes; on cpu and mps that of the machine."""
    if _selected().device.host_memory:
        return _pages("SC_AVPHYS_PAGES"), _pages("SC_PHYS_PAGES")
    free, total = _call("mem_get_info", device, instead="memory_allocated() tells what torch has taken")
    return free, total


def _pages(name: str) -> int:
    """Memory of the machine in bytes, 0 where the operating system does not tell."""
    known = name in getattr(os, "sysconf_names", {})
    return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE") if known else 0


# -- Graph mode ----------------------------------------------------------------------------------------------------


def compile(model: Any = None, **options: Any) -> Any:
    """``torch.compile`` for the selected device, as a call or as a decorator.

    Where no backend or 'inductor' is asked for, the device's own compiler is taken; any other stays. What a device
    without a compiler, or torch before 2.0, is given comes back as it is, with one warning. A function is compiled when
    it is first called, because decorators run at import.
    """
    if not os.environ.get("AI_DEVICE", "").strip():
        return torch.compile(model, **options)
    if model is None:
        return functools.partial(compile, **options)
    if isinstance(model, (type, torch.nn.Module)):
        return _compiled(model, options)
    return _compiled_when_called(model, options)


def compile_module(module: torch.nn.Module, **options: Any) -> torch.nn.Module:
    """``module.compile(...)`` for the selected device: as ``compile``, in place, so that class and state dict stay."""
    given: dict[str, Any] | None = options
    if os.environ.get("AI_DEVICE", "").strip():
        given = _compile_options(options, "2.1", hasattr(torch.nn.Module, "compile"))
    if given is not None:
        module.compile(**given)
    return module


def graph_mode(model: Any) -> Any:
    """A model that runs eagerly on CUDA, compiled in place for the selected device; class and state dict stay.

    While AI_DEVICE is unset and on the CPU it stays as it is, and so does what is no module, or is compiled or scripted
    already.
    """
    selected = _selected()
    is_eager = isinstance(model, torch.nn.Module) and not isinstance(model, torch.jit.ScriptModule)
    is_compiled = hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None
    if selected.value and selected.device is not _CPU and is_eager and not is_compiled:
        compile_module(model)
    return model


def _compiled(model: Any, options: dict[str, Any]) -> Any:
    given = _compile_options(options, "2.0", hasattr(torch, "compile"))
    return model if given is None else torch.compile(model, **given)


def _compile_options(options: dict[str, Any], needs: str, is_in_torch: bool) -> dict[str, Any] | None:
    """The options of ``torch.compile`` for the selected device; None, with a warning, where it cannot compile."""
    known = _selected().device
    takes_own = known.type not in ("cuda", "cpu") and options.get("backend") in (None, "inductor")
    reason = ""
    if not is_in_torch:
        reason = f"Compiling needs torch {needs}"
    elif takes_own and not known.compile_backend:
        reason = f"No compiler for torch.compile is known on {known.type}"
    elif takes_own and not _torch_is(known.compile_since):
        reason = f"torch.compile on {known.type} needs torch {known.compile_since}"
    if reason:
        _warn_once(f"{reason}: it runs eagerly.")
        return None
    return _with_backend(options, known) if takes_own else options


def _with_backend(options: dict[str, Any], known: _Device) -> dict[str, Any]:
    dropped = [name for name in ("mode", "options") if options.get(name) is not None]
    if known.compile_backend == "inductor" or not dropped:
        return {**options, "backend": known.compile_backend}
    _warn_once(f"{known.compile_backend}, the compiler of {known.type}, does not take {' or '.join(dropped)}.")
    return {**{name: options[name] for name in options if name not in dropped}, "backend": known.compile_backend}


def _compiled_when_called(function: Any, options: dict[str, Any]) -> Any:
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    compiled: list[Any] = []

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_compiling is not None and is_compiling():  # a compiled caller takes it in as it is
            return function(*args, **kwargs)
        if not compiled:
            compiled.append(_compiled(function, options))
        return compiled[0](*args, **kwargs)

    return call


# -- Streams, events and markers -----------------------------------------------------------------------------------


class _HostStream:
    """Stands in for a stream where everything runs in order: there is nothing to wait for."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.priority = priority

    @property
    def device(self) -> torch.device:
        return device()

    def synchronize(self) -> None:
        synchronize()

    def query(self) -> bool:
        return True

    def wait_stream(self, stream: Any) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def record_event(self, event: Any = None) -> Any:
        event = _HostEvent() if event is None else event
        event.record(self)
        return event


class _HostEvent:
    """Stands in for an event: it takes the wall clock when the work before it is done."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        synchronize()
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        synchronize()

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to the other."""
        if self._time is None or end_event._time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return float(end_event._time - self._time) * 1000.0


_host_stream = _HostStream()

current_stream = _forward("current_stream", host=lambda: _host_stream)
default_stream = _forward("default_stream", host=lambda: _host_stream, instead="use current_stream()")
stream = _forward("stream", before=1, host=contextlib.nullcontext)
set_stream = _forward("set_stream", before=1, host=lambda stream: None)


def record_stream(tensor: torch.Tensor, stream: Any) -> None:
    """``tensor.record_stream(stream)``; nothing where a stream is only a stand-in."""
    if not isinstance(stream, _HostStream):
        tensor.record_stream(stream)


class _OnOneDevice(torch.nn.DataParallel):  # type: ignore[type-arg]
    """``torch.nn.DataParallel`` off CUDA: gives the inputs to the module, which stays reachable as ``.module``.

    As with one GPU, tensors among the inputs go to the device of the module first.
    """

    def __init__(
        self, module: torch.nn.Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        torch.nn.Module.__init__(self)
        if device_count() > 1:
            _warn_once("DataParallel uses one device here; DistributedDataParallel uses all of them.")
        self.module = module
        self.device_ids: list[int] = []
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        weight = next(itertools.chain(self.module.parameters(), self.module.buffers()), None)
        place = device() if weight is None else weight.device
        return self.module(*_moved(inputs, place), **_moved(kwargs, place))


def _moved(value: Any, place: torch.device) -> Any:
    """A copy of nested tuples, lists and dicts with their tensors on a device."""
    if isinstance(value, torch.Tensor):
        return value.to(place)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(one, place) for one in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_moved(one, place) for one in value)
    if isinstance(value, dict):
        return type(value)((key, _moved(one, place)) for key, one in value.items())
    return value


def _marker(name: str, silent: Any) -> Any:
    def mark(*args: Any, **kwargs: Any) -> Any:
        return getattr(torch.cuda.nvtx, name)(*args, **kwargs) if device_type() == "cuda" else silent

    return staticmethod(mark)


class nvtx:
    """``torch.cuda.nvtx``: markers for NVIDIA's profiler on CUDA, silent on other devices."""

    range_push = _marker("range_push", 0)
    range_pop = _marker("range_pop", 0)
    range_start = _marker("range_start", 0)
    range_end = _marker("range_end", None)
    mark = _marker("mark", None)

    @staticmethod
    @contextlib.contextmanager
    def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A range around a block or a function."""
        with torch.cuda.nvtx.range(msg, *args, **kwargs) if device_type() == "cuda" else contextlib.nullcontext():
            yield


# -- Classes that belong to the device -----------------------------------------------------------------------------

_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}


def tensor_type(name: str) -> str:
    """The name of a legacy tensor type on the selected device: 'torch.cuda.HalfTensor' as 'torch.npu.HalfTensor'."""
    known = _selected().device
    prefix, _, last = name.rpartition(".")
    if prefix != "torch.cuda" or known.type == "cuda":
        return name
    return f"torch.{last}" if known is _CPU else f"torch.{known.type}.{last}"


def set_default_tensor_type(t: Any) -> None:
    """``torch.set_default_tensor_type``; a CUDA type means the same type on the selected device."""
    selected = _selected()
    name = t if isinstance(t, str) else f"{t.__module__}.{t.__name__}"
    if not selected.value or not name.startswith("torch.cuda."):
        torch.set_default_tensor_type(t)
    elif selected.device.legacy_tensors:
        torch.set_default_tensor_type(tensor_type(name))
    elif hasattr(torch, "set_default_device"):
        torch.set_default_dtype(getattr(torch, _DTYPES[name[len("torch.cuda.") : -len("Tensor")]]))
        torch.set_default_device(device())
    else:
        raise RuntimeError(_no_legacy_type(name.rpartition(".")[2]))


def _no_legacy_type(name: str) -> str:
    kind = device_type()
    if name.endswith("Storage"):
        return f"{kind} has no {name}: use torch.UntypedStorage(size, device=ai_device.device())."
    dtype = _DTYPES.get(name[: -len("Tensor")], "float32")
    return f"{kind} has no {name}: use torch.tensor(data, dtype=torch.{dtype}, device=ai_device.device())."


def __getattr__(name: str) -> Any:
    """Looks up ``Stream``, ``Event``, ``DataParallel``, ``FloatTensor`` and the like for the selected device."""
    if name == "OutOfMemoryError":
        return _native(_selected(), name) or getattr(torch, name, None) or torch.cuda.OutOfMemoryError
    if name == "DataParallel":
        return torch.nn.DataParallel if device_type() == "cuda" else _OnOneDevice
    if name in ("Stream", "Event", "ExternalStream"):
        return _stream_class(name)
    if any(name in (f"{prefix}Tensor", f"{prefix}Storage") for prefix in _DTYPES):
        return _legacy_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _stream_class(name: str) -> Any:
    selected = _selected()
    if selected.device.single_device and name != "ExternalStream":
        return _HostStream if name == "Stream" else _HostEvent
    native = _native(selected, name)
    if native is None:
        raise AttributeError(f"{selected.device.type} has no {name} in torch {torch.__version__}")
    if name != "Event":
        _use_default_index(selected)  # a stream belongs to the device that is current when it is made
    return native


def _legacy_class(name: str) -> Any:
    known = _selected().device
    owner = torch if known is _CPU else _namespace(known)
    found = getattr(owner, name, None) if known.legacy_tensors else None
    if found is None:
        raise AttributeError(_no_legacy_type(name))
    return found
