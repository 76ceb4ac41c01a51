"""Names in less room: what says least goes first, what tells kernels apart stays, and no name does harm."""

from __future__ import annotations

import time

import pytest
from conftest import trace_path
from hypothesis import given
from hypothesis import strategies as st

import cuptiprof
from cuptiprof.text.names import display_name, display_width
from cuptiprof.text.short_names import cut_middle, shorten

ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >"
    "(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)"
)
NEG = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}"
    "::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2> >(int, at::native::neg_kernel_cuda(at::"
    "TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2>)"
)
TRITON = "triton_per_fused_native_layer_norm_backward_threshold_backward_12"


@pytest.mark.parametrize(
    "width,short",
    [
        (400, ADD),
        (120, "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>>"),
        (80, "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, Array<char*, 3>>"),
        (60, "vectorized_elementwise_kernel<4, CUDAFunctor_add, Array>"),
        (40, "vectorized_elementwise_kernel<4, …>"),
        (29, "vectorized_elementwise_kernel"),
        (12, "vectori…rnel"),
    ],
)  # fmt: skip
def test_by_meaning(width: int, short: str) -> None:
    assert shorten([ADD], width)[ADD] == short


@pytest.mark.parametrize(
    "name,width,short",
    [
        ("void (anonymous namespace)::softmax<float, 10>(float*, bool const*)", 30, "softmax<float, 10>"),
        ("void foo(int)", 5, "foo"),
        ("bool operator< <int>(A const&, B const&)", 30, "operator< <int>"),
        ("ns::A::operator()(int, int) const [clone .isra.0]", 20, "ns::A::operator()"),
        ("void f<(Kind)0, g(int)>(int)", 17, "f<(Kind)0, g>"),
        (TRITON, 40, "triton_per_fused_native_…old_backward_12"),
        ("[CUDA memcpy HtoD]", 10, "[CUDA …oD]"),
        ("a<b(c]", 5, "a<b…]"),
        ("名" * 20, 9, "名名…名"),
    ],
)
def test_odd_names(name: str, width: int, short: str) -> None:
    assert shorten([name], width)[name] == short


def test_what_tells_kernels_apart_stays() -> None:
    both = shorten([ADD, NEG], 45)
    assert both == {
        ADD: "vectorized_el…e_kernel<…, CUDAFunctor_add, …>",
        NEG: "vectorized_el…e_kernel<…, neg_kernel_cuda, …>",
    }
    sizes = [f"cudnn_infer_volta_scudnn_{n}_relu_medium_nn_v1" for n in ("128x128", "128x64", "128x32")]
    short = shorten(sizes, 30)
    assert all(name.split("_")[4] in short[name] for name in sizes)


@pytest.mark.parametrize("width", [24, 34, 60])
def test_of_a_recorded_run(width: int) -> None:
    names = {display_name(name) for name in cuptiprof.open(trace_path("train-v100")).kernels["name"]}
    short = shorten(names, width)
    assert short.keys() == names and max(map(display_width, short.values())) <= width
    assert len(set(short.values())) > 0.85 * len(names)  # few look alike


@given(st.lists(st.text("ab_:<>(){}[],. #~*&é名\u0301") | st.text(), max_size=5), st.integers(1, 60))
def test_any_text(names: list[str], width: int) -> None:
    for name, text in shorten(names, width).items():
        assert display_width(text) <= width and (text == name or display_width(name) > width)
        assert display_width(cut_middle(name, width)) <= width


@pytest.mark.parametrize("piece", ["a<", "a::", "(", "x", "operator", "a<b,", "{lambda", "<>", "a b ", "::a<b>"])
def test_long_names_take_no_time(piece: str) -> None:
    for length in (8_000, 1_000_000):
        start = time.process_time()
        shorten([piece * (length // len(piece)), piece * (length // len(piece)) + "x"], 40)
        assert time.process_time() - start < 1
