"""Names of PyTorch's CUDA kernels, spelt as torch's own profiler shows them (demangled)."""

from __future__ import annotations

_TYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    "float8_e4m3fn": "c10::Float8_e4m3fn", "float8_e5m2": "c10::Float8_e5m2",
}  # fmt: skip


def ctype(dtype: str) -> str:
    """C++ type of an element type."""
    return _TYPES.get(dtype, "char")


def acctype(dtype: str) -> str:
    """C++ type that CUDA kernels accumulate in."""
    if dtype in ("float16", "bfloat16"):
        return "float"
    return "long" if dtype in ("bool", "uint8", "int8", "int16", "int32") else ctype(dtype)


_BINARY = {
    "mul": "binary_internal::MulFunctor", "div": "binary_internal::DivFunctor",
    "bitwise_and": "BitwiseAndFunctor", "bitwise_or": "BitwiseOrFunctor", "bitwise_xor": "BitwiseXorFunctor",
    "__and__": "BitwiseAndFunctor", "__or__": "BitwiseOrFunctor",
}  # fmt: skip
_COMPARE = {
    "eq": "CompareEqFunctor", "ne": "CompareEqFunctor", "lt": "CompareFunctor", "le": "CompareFunctor",
    "gt": "CompareFunctor", "ge": "CompareFunctor",
}  # fmt: skip
_HOST_FUNCTIONS = {
    "relu": "(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)",
    "clamp": "(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)",
    "gelu": "GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)",
    "gelu_backward": "GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)",
    "threshold_backward": "(anonymous namespace)::threshold_kernel_impl<{t}>(at::TensorIteratorBase&, {t}, {t})",
    "silu": "(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)",
    "silu_backward": "(anonymous namespace)::silu_backward_kernel(at::TensorIteratorBase&)",
    "where": "(anonymous namespace)::where_kernel_impl(at::TensorIterator&)",
    "masked_fill": "(anonymous namespace)::masked_fill_kernel(at::TensorIterator&, c10::Scalar const&)",
    "addcmul": "addcmul_cuda_kernel(at::TensorIteratorBase&, c10::Scalar const&)",
    "addcdiv": "addcdiv_cuda_kernel(at::TensorIteratorBase&, c10::Scalar const&)",
    "lerp": "(anonymous namespace)::lerp_scalar_kernel(at::TensorIteratorBase&, c10::Scalar const&)",
    "pow": "(anonymous namespace)::pow_tensor_scalar_kernel_impl<{t}, {t}>(at::TensorIteratorBase&, {t})",
    "maximum": "maximum_kernel_cuda(at::TensorIteratorBase&)",
    "minimum": "minimum_kernel_cuda(at::TensorIteratorBase&)",
    "mse_loss": "mse_kernel_cuda(at::TensorIteratorBase&)",
    "copy": "direct_copy_kernel_cuda(at::TensorIteratorBase&)",
    "cast_bfloat16": "bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)",
    "cast_float16": "float16_copy_kernel_cuda(at::TensorIteratorBase&)",
}


def functor(op: str, dtype: str, *, tensors: int = 1) -> str:
    """The functor of an element-wise kernel.

    Args:
        op: operator without overload; a trailing "_" (in place) does not matter.
        dtype: element type.
        tensors: tensor operands; one of two operands may be a number.
    """
    op = op if op.startswith("__") else op.rstrip("_")
    t = ctype(dtype)
    if op in ("add", "sub", "rsub"):
        return f"at::native::CUDAFunctor_add<{t}>" if tensors > 1 else f"at::native::CUDAFunctorOnSelf_add<{t}>"
    if op in _BINARY or op in _COMPARE:
        inner, result = (
            (f"at::native::{_BINARY[op]}<{t}>", t)
            if op in _BINARY
            else (f"at::native::(anonymous namespace)::{_COMPARE[op]}<{t}>", "bool")
        )
        if op == "div" and tensors == 1:  # by a number: times its inverse
            inner = f"at::native::{_BINARY['mul']}<{t}>"
        return f"at::native::{'BinaryFunctor' if tensors > 1 else 'AUnaryFunctor'}<{t}, {t}, {result}, {inner} >"
    if op == "fill":
        return f"at::native::FillFunctor<{t}>"
    function = _HOST_FUNCTIONS.get(op, f"{op.lstrip('_')}_kernel_cuda(at::TensorIteratorBase&)").replace("{t}", t)
    parameters = ", ".join([t] * max(1, tensors))
    return f"at::native::{function}::{{lambda()#2}}::operator()() const::{{lambda({parameters})#1}}"


def elementwise(functor: str, operands: int, *, vectorized: bool) -> str:
    """An element-wise kernel over `operands` tensors (results included)."""
    if vectorized:
        data = f"std::array<char*, {operands}ul>"
        return f"void at::native::vectorized_elementwise_kernel<4, {functor}, {data} >(int, {functor}, {data})"
    inner = (
        f"at::native::gpu_kernel_impl_nocast<{functor} >(at::TensorIteratorBase&, {functor} const&)::{{lambda(int)#1}}"
    )
    return f"void at::native::elementwise_kernel<128, 2, {inner}>(int, {inner})"


_REDUCTIONS = {
    "mean": "MeanOps<{t}, {a}, {a}, {t}>",
    "amax": "func_wrapper_t<{t}, at::native::MaxNanFunctor<{t}> >",
    "amin": "func_wrapper_t<{t}, at::native::MinNanFunctor<{t}> >",
    "max": "MaxOps<{t}>",
    "min": "MinOps<{t}>",
    "aminmax": "MinMaxOps<{t}, {t}, int>",
    "argmax": "ArgMaxOps<{a}>",
    "argmin": "ArgMinOps<{a}>",
    "norm": "NormTwoOps<{t}, {a}, {a}>",
    "linalg_vector_norm": "NormTwoOps<{t}, {a}, {a}>",
    "var": "WelfordOps<{t}, {a}, int, std::pair<{t}, {t}> >",
    "std": "WelfordOps<{t}, {a}, int, std::pair<{t}, {t}> >",
    "var_mean": "WelfordOps<{t}, {a}, int, std::pair<{t}, {t}> >",
    "std_mean": "WelfordOps<{t}, {a}, int, std::pair<{t}, {t}> >",
    "any": "func_wrapper_t<bool, at::native::or_kernel_cuda(at::TensorIterator&)::{lambda(bool, bool)#1}>",
    "all": "func_wrapper_t<bool, at::native::and_kernel_cuda(at::TensorIterator&)::{lambda(bool, bool)#1}>",
}


def reduction(op: str, dtype: str) -> str:
    """A kernel of Reduce.cuh."""
    t, a = ctype(dtype), acctype(dtype)
    default = f"func_wrapper_t<{t}, at::native::{op}_functor<{t}, {a}, {t}>::operator()(at::TensorIterator&)::{{lambda({a}, {a})#1}}>"
    ops = _REDUCTIONS.get(op, default).replace("{t}", t).replace("{a}", a)
    operation = f"at::native::ReduceOp<{t}, at::native::{ops}, unsigned int, {t}, 4, 4>"
    return f"void at::native::reduce_kernel<512, 1, {operation} >({operation})"


_LIST_FUNCTORS = {
    "add": "BinaryOpListAlphaFunctor<{t}, {d}, {r}, {o}>, std::plus<{a}>, {a}",
    "sub": "BinaryOpListAlphaFunctor<{t}, {d}, {r}, {o}>, std::minus<{a}>, {a}",
    "mul": "BinaryOpScalarFunctor<{t}, {d}, {r}, {o}>, std::multiplies<{a}>, {a}",
    "div": "BinaryOpScalarFunctor<{t}, {d}, {r}, {o}>, std::divides<{a}>, {a}",
    "lerp": "TernaryOpScalarFunctor<{t}, {d}, {r}, {o}>, at::native::LerpFunctor<{a}>, {a}",
    "addcmul": "PointwiseOpScalarFunctor<{t}, {d}, {r}, {o}>, std::multiplies<{a}>, {a}",
    "addcdiv": "PointwiseOpScalarFunctor<{t}, {d}, {r}, {o}>, std::divides<{a}>, {a}",
    "norm": "LpNormFunctor<{t}, (at::native::NormType)1, {t}, 1, 1, 0>, {t}*, unsigned int",
    "zero": "ZeroFunctor<{t}, 1, 1, 0>",
    "copy": "CopyFunctor<{t}, {t}, 2, 1, 1>, at::native::Copy<{t}, {t}>",
    "adam": "FusedAdamMathFunctor<{t}, 4, (at::native::ADAM_MODE)0, false>, double, double, double, double, double, bool, float*, float*",
    "adamw": "FusedAdamMathFunctor<{t}, 4, (at::native::ADAM_MODE)1, false>, double, double, double, double, double, bool, float*, float*",
    "sgd": "FusedSgdMathFunctor<{t}, 3>, double, float const*, double, double, double, bool, bool, bool, float*, float*",
}


def multi_tensor(op: str, dtype: str, depth: int, *, in_place: bool) -> str:
    """A kernel of multi_tensor_apply over lists of tensors, `depth` lists at once (results included)."""
    t, a = ctype(dtype), acctype(dtype)
    name = "".join(w.capitalize() for w in op.split("_"))
    default = f"UnaryOpFunctor<{{t}}, {{d}}, {{r}}, {{o}}>, at::native::{name}<{{a}}>"
    text = _LIST_FUNCTORS.get(op, default).replace("{t}", t).replace("{a}", a).replace("{d}", str(depth))
    text = text.replace("{r}", "1").replace("{o}", "0" if in_place else str(depth - 1))
    metadata = f"at::native::(anonymous namespace)::TensorListMetadata<{depth}>"
    callable_ = f"at::native::(anonymous namespace)::{text}"
    return f"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<{metadata}, {callable_} >({metadata}, {callable_})"
