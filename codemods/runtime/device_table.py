"""Renders the device table that the helper ``ai_device.py`` carries, from ``rules/devices``.

python -m codemods.runtime.device_table            rewrites the table in the helper
python -m codemods.runtime.device_table --check    exits 1 if the table is not up to date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from codemods.devices import Device, load_devices

HELPER = Path(__file__).with_name("ai_device.py")
BEGIN = "# >>> device table, generated\n"
END = "# <<< device table\n"

_DEFAULTS = {
    "plugin": "",
    "plugin_until": "",
    "install": "",
    "monitor": "",
    "backend": "nccl",
    "backend_import": "",
    "backend_since": "",
    "older_backend": "",
    "older_backend_import": "",
    "autocast_since": "",
    "grad_scaler": "torch",
    "grad_scaler_since": "",
    "pin_memory": True,
    "legacy_tensors": True,
    "single_device": False,
    "host_memory": False,
    "auto": True,
    "compile_backend": "inductor",
    "compile_since": "",
}
"""The fields that the helper knows under the same name, with its defaults."""


def render(devices: Iterable[Device]) -> str:
    """The table as Python source, between its two marker lines."""
    # The helper takes the first entry where AI_DEVICE is unset: CUDA as NVIDIA has it.
    ordered = sorted(devices, key=lambda device: device.name != "nvidia")
    entries = "".join(_entry(device) for device in ordered)
    return f"{BEGIN}# fmt: off\n_DEVICES = (\n{entries})\n# fmt: on\n{END}"


def replace_table(source: str, table: str) -> str:
    """The source of the helper with this table; raises ValueError if the markers are not there."""
    before, begin, rest = source.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the lines {BEGIN.strip()!r} and {END.strip()!r} must both stand in the helper")
    return before + table + after


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrites or checks the helper; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m codemods.runtime.device_table", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--check", action="store_true", help="only tell whether the table is up to date")
    check = parser.parse_args(arguments).check
    source = HELPER.read_text(encoding="utf-8")
    wanted = replace_table(source, render(load_devices()))
    if source == wanted:
        return 0
    if check:
        print(
            f"{HELPER.name}: the device table differs from rules/devices; run python -m codemods.runtime.device_table"
        )
        return 1
    HELPER.write_text(wanted, encoding="utf-8", newline="\n")
    print(f"{HELPER.name}: device table rewritten")
    return 0


def _entry(device: Device) -> str:
    values: dict[str, object] = {"type": device.type, "title": device.title, "aliases": " ".join(device.aliases)}
    if device.namespace != f"torch.{device.type}":
        values["namespace"] = device.namespace
    values.update((key, getattr(device, key)) for key, default in _DEFAULTS.items() if getattr(device, key) != default)
    if device.autocast_default != "float16":
        values["autocast"] = device.autocast_default
    if device.mask_variable:
        values["mask"] = device.mask_variable
    if (activities := _activities(device)) != "CUDA":
        values["profiler_activity"] = activities
    return _call("_Device", [f"{key}={_literal(value)}" for key, value in values.items()])


def _activities(device: Device) -> str:
    if device.dispatch_key == "PrivateUse1":  # the name of its own is an alias that older torch lacks
        return f"{device.profiler_activity} PrivateUse1".strip()
    return device.profiler_activity


def _call(function: str, arguments: Sequence[str]) -> str:
    """A call as an element of a tuple, with as many arguments on a line as fit."""
    lines = [f"    {function}("]
    for number, argument in enumerate(arguments):
        argument += "," if number < len(arguments) - 1 else "),"
        if len(lines) > 1 and len(lines[-1]) + 1 + len(argument) <= 120:
            lines[-1] += f" {argument}"
        else:
            lines.append(f"        {argument}")
    return "\n".join(lines) + "\n"


def _literal(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


if __name__ == "__main__":
    sys.exit(main())
