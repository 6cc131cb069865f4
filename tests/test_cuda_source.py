"""How much a CUDA source holds."""

from __future__ import annotations

import pytest

from codemods.analysis.cuda_source import measure

SOURCE = rb"""
// __global__ void comment() {}
/* __global__ void comment() {} */
const char *text = "__global__ void text() { \" }";  // '
__global__ void declared(float *x);

template <typename T>
__global__ void __launch_bounds__(256, 2)
plain(T *x, char quote = '"') {
    x[threadIdx.x] = 1'000;
}
static __global__
void second(int n) { }
__device__ float not_a_kernel(float x) { return x; }
"""


def test_lines_and_definitions_of_kernels_are_counted() -> None:
    assert measure(SOURCE) == (SOURCE.count(b"\n"), 2)


@pytest.mark.parametrize(
    ("raw", "lines"), [(b"", 0), (b"x", 1), (b"x\n", 1), (b"x\ny", 2), (b"\xff\x00\n", 1), (b"/* open\n", 1)]
)
def test_lines(raw: bytes, lines: int) -> None:
    assert measure(raw) == (lines, 0)


def test_a_line_end_of_windows_is_one() -> None:
    assert measure(SOURCE.replace(b"\n", b"\r\n")) == measure(SOURCE)


def test_a_comment_that_a_backslash_carries_on() -> None:
    assert measure(b"// a \\\n__global__ void f() {}\n").kernels == 0
    assert measure(b"// a \\\r\n__global__ void f() {}\r\n").kernels == 0


def test_a_file_that_is_made_to_hold_out_does_not() -> None:
    assert measure(b"__global__ " * 20_000).kernels == 0
