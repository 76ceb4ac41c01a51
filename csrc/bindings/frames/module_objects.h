// The names of PyTorch's modules whose addresses launches saw (g_module_table), found under the GIL: the path
// from the outermost module around, by the names it has in its parents' `_modules`.
//
// Nothing is looked up at an address that a launch saw: names are given to objects that Python shows alive,
// and the death of every module is told (Module.__del__), so that one is never taken for another.
#pragma once
#include <Python.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace cuptiprof {

// The code of torch.nn.Module._wrapped_call_impl while a session asks for modules; null: none does.
inline std::atomic<const PyCodeObject*> g_module_call{nullptr};
// The code that computes once more what a checkpoint did not keep, inside of whatever node of backward asks
// first: what is called directly below is of nobody knows which module.
inline std::atomic<const PyCodeObject*> g_recomputing_call{nullptr};

// The rest is called with the GIL, unless it says otherwise. False: Python raised.

// From now on frames that run `call` are calls of modules, and deaths of objects of `module_class` are told.
// Throws Error.
bool watch_modules(PyObject* module_class, PyObject* call);
void watch_recomputing(PyObject* call);
// Leaves the class as it was, and forgets both codes. At any time, also twice.
void unwatch_modules() noexcept;

// Names every living module that has none, and looks whether the others are still where they were.
bool name_living_modules();
// From a launch callback, without the GIL: the main thread is to name the modules that it runs, soon.
void ask_for_names() noexcept;

// For a trial: the first argument of the innermost frame of the calling thread that runs `call`, as a launch
// callback reads it; null: there is none. Without the GIL.
const PyObject* argument_of_call(const PyCodeObject* call) noexcept;

// Names of the modules that launches saw, by number; those that are not known, or are not sure, have none.
std::map<uint32_t, std::string> module_names();

}  // namespace cuptiprof
