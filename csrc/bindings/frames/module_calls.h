// Which of PyTorch's modules a launch is made from, by the frames of the launching thread: those that run
// torch.nn.Module._wrapped_call_impl, which every call of a module goes through (torch 2.1 on), have the
// module as their first argument.
//
// Read without the GIL, as frames are (interpreter_frames.h): the frame keeps the module alive.
#pragma once
#include <cstring>

#include "bindings/frames/interpreter_frames.h"
#include "bindings/frames/module_objects.h"
#include "threads/module_table.h"

namespace cuptiprof::frames {

// A graph that torch.compile runs is a module, too, but none of the program's: only compilers make lazy ones.
inline bool is_compilers(const PyTypeObject* type) noexcept {
  return type->tp_base && std::strcmp(type->tp_base->tp_name, "_LazyGraphModule") == 0;
}

// The innermost call among frames that are shown from the innermost on.
class ModuleCall {
 public:
  void look_at(Frame* f) noexcept {
    if (x_found) return;
    const PyCodeObject* code = code_of(f);
    if (code == x_recomputing) {
      x_found = true;
      x_number = kUnknownModule;
      return;
    }
    if (code != x_call) return;
    const PyObject* self = first_local(f);
    if (!self || is_compilers(Py_TYPE(self))) return;
    x_found = true;
    x_number = g_module_table.number(self, Py_TYPE(self));
    if (x_number == 0)
      g_frames_lost.fetch_add(1, std::memory_order_relaxed);
    else if (g_module_table.use(x_number)) [[unlikely]]
      ask_for_names();
  }
  [[nodiscard]] bool is_found() const noexcept { return x_found; }
  // Number in g_module_table, or kUnknownModule; 0: none runs.
  [[nodiscard]] uint32_t module() const noexcept { return x_number; }

 private:
  const PyCodeObject* x_call = g_module_call.load(std::memory_order_relaxed);
  const PyCodeObject* x_recomputing = g_recomputing_call.load(std::memory_order_relaxed);
  uint32_t x_number = 0;
  bool x_found = false;
};

}  // namespace cuptiprof::frames
