"""What a rehearsal costs: the time of operators and of training steps on a virtual device, as multiples of the CPU's.

    python benchmarks/rehearse.py [DEVICE]

Both run in one process, in turns, and the median of the turns counts. Tensors are small, so that the cost of the
virtual device shows: with large ones the CPU's kernels take most of the time on either side.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import nn

from codemods.rehearse.backend import install

TURNS = 9
OPERATORS: dict[str, Callable[[torch.Tensor], object]] = {
    "add": lambda x: x + x,
    "add_": lambda x: x.add_(1),
    "matmul": lambda x: x @ x,
    "view": lambda x: x.view(-1),
    "sum": lambda x: x.sum(),
    "item": lambda x: x[0, 0].item(),
    "softmax": lambda x: x.softmax(-1),
}


def main() -> None:
    """Prints one line an operator and one a model."""
    device = sys.argv[1] if len(sys.argv) > 1 else "npu"
    install(device)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread, median of {TURNS} turns; microseconds on the CPU and on {device}")
    for name, operator in OPERATORS.items():
        compare(name, lambda place, operator=operator: calls(operator, place), device, 200)  # type: ignore[misc]
    compare("training step, MLP with AdamW", lambda place: training(perceptron(), (32, 64), place), device, 10)
    compare("training step, convolutions with SGD", lambda place: training(convnet(), (8, 3, 16, 16), place), device, 5)


def compare(name: str, make: Callable[[str], Callable[[], object]], device: str, times: int) -> None:
    """Times the same work on the CPU and on the device, in turns."""
    work = {place: make(place) for place in ("cpu", device)}
    seconds: dict[str, list[float]] = {place: [] for place in work}
    for _ in range(TURNS + 1):
        for place, step in work.items():
            start = time.perf_counter()
            for _ in range(times):
                step()
            seconds[place].append((time.perf_counter() - start) / times)
    cpu, virtual = (median(turns[1:]) * 1e6 for turns in seconds.values())  # the first turn warms up
    print(f"{name:40} {cpu:10.1f} {virtual:10.1f}  {virtual / cpu:6.1f} times")


def calls(operator: Callable[[torch.Tensor], object], place: str) -> Callable[[], object]:
    """An operator with a tensor on a device."""
    tensor = torch.ones(16, 16, device=place)
    return lambda: operator(tensor)


def training(model: nn.Module, shape: tuple[int, ...], place: str) -> Callable[[], object]:
    """A training step of a model on a device, with a loss that is read."""
    model = model.to(place)
    kind = torch.optim.AdamW if isinstance(model[0], nn.Linear) else torch.optim.SGD  # type: ignore[index]
    optimizer = kind(model.parameters(), lr=1e-3)
    inputs, targets = torch.ones(shape, device=place), torch.zeros(shape[0], dtype=torch.int64, device=place)

    def step() -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.item()

    return step


def perceptron() -> nn.Module:
    """Four layers of 128."""
    layers = [nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(128, 10))


def convnet() -> nn.Module:
    """Two convolutions with batch norm."""
    blocks = [nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU()]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


if __name__ == "__main__":
    main()
