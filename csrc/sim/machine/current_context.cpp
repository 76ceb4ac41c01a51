#include "sim/machine/current_context.h"

#include <vector>

namespace sim {
namespace {

thread_local std::vector<CUcontext> t_stack;
thread_local CUcontext t_runtime = nullptr;  // made current by the runtime's calls

}  // namespace

CUcontext current_context() { return t_stack.empty() ? t_runtime : t_stack.back(); }

void set_runtime_context(CUcontext context) { t_runtime = context; }

void leave_contexts() {
  t_stack.clear();
  t_runtime = nullptr;
}

void push_context(CUcontext context) { t_stack.push_back(context); }

CUcontext pop_context() {
  if (t_stack.empty()) return nullptr;
  const CUcontext top = t_stack.back();
  t_stack.pop_back();
  return top;
}

void replace_context(CUcontext context) {
  pop_context();
  if (context)
    t_stack.push_back(context);
  else
    t_runtime = nullptr;
}

}  // namespace sim
