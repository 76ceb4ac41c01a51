// Readable names of kernels. The input may be anything.
#pragma once
#include <string>
#include <string_view>

namespace cuptiprof {

// The demangled form of an Itanium-ABI name ("_Z..."); any other text, and a name that cannot be demangled
// within the bounds (demangle.cpp), comes back unchanged.
std::string demangle(std::string_view mangled);

// What ncu calls the function name: no return type, namespaces, template arguments or parameters.
// "void at::native::reduce_kernel<512, 1>(int)" -> "reduce_kernel". Text that is not a C++ function comes
// back unchanged.
std::string function_base(std::string_view demangled);

// The same with its namespaces: "at::native::reduce_kernel".
std::string qualified_name(std::string_view demangled);

}  // namespace cuptiprof
