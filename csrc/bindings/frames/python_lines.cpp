#include "bindings/frames/python_lines.h"

#include <algorithm>

#include "base/error.h"
#include "bindings/frames/code_names.h"
#include "bindings/frames/interpreter_frames.h"
#include "bindings/frames/line_table.h"
#include "bindings/frames/module_calls.h"
#include "threads/forward_modules.h"
#include "threads/thread_slots.h"

namespace cuptiprof {
namespace {

using namespace frames;

constexpr uint32_t kMaxDepth = 1024;  // frames of a stack; what lies around them is one frame of this name:
constexpr std::string_view kOuter = "(outer frames)";

// Prefixes of file names, never destroyed: a callback may look at any time. Written while none comes.
struct Origins {
  std::vector<std::pair<std::string, bool>> prefixes;  // and whether they are the user's; longest first
  bool is_user(std::string_view file) const noexcept {
    for (const auto& [prefix, user] : prefixes)
      if (file.starts_with(prefix)) return user;
    // Of other environments than the running one, too.
    return file.find("/site-packages/") == file.npos && file.find("/dist-packages/") == file.npos;
  }
};
Origins& origins() {
  static auto* all = new Origins;
  return *all;
}

// One step of the hash of a stack.
uint64_t fold(uint64_t h, uint64_t x) noexcept {
  h = (h ^ x) * 0x9e3779b97f4a7c15ull;
  return h ^ h >> 32;
}

// Without a module the hash is that of the stack alone.
uint64_t fold_module(uint64_t h, uint32_t module) noexcept {
  return module != 0 ? fold(h, ~uint64_t{module}) : h;
}

// What is hashed of a frame: its instruction, which lies inside its code object; and where code objects die
// and others come to lie, which one it is.
uint64_t fold_frame(uint64_t h, Frame* f) noexcept {
  // One frame waits for the other: the least that mixes. Whoever looks the hash up mixes it again.
  h = h * 0x9e3779b97f4a7c15ull + instruction(f);
  const PyCodeObject* code = code_of(f);
  if (g_frame_tree.is_reused(code)) [[unlikely]]
    h = fold(h, g_frame_tree.code(code));
  return h;
}

[[gnu::noinline]] uint64_t copy_names(PyCodeObject* code) noexcept {
#if PY_VERSION_HEX < 0x030b0000
  PyObject* name = code->co_name;
#else
  PyObject* name = code->co_qualname;
#endif
  const NameCopy file(code->co_filename);
  const auto first_line = static_cast<uint32_t>(std::max(0, code->co_firstlineno));
  const bool is_user = origins().is_user(file.view());
  const NameCopy function(name);
  return g_frame_tree.add_code(code, file.view(), function.view(), first_line, is_user);
}

// As FrameTree::code(), of a code object that is known from now on. Function 0: there is no room.
uint64_t code_state(PyCodeObject* code) noexcept {
  const uint64_t state = g_frame_tree.code(code);
  return FrameTree::function_of(state) ? state : copy_names(code);
}

uint32_t line_of(Frame* f) noexcept {
#if PY_VERSION_HEX < 0x030b0000
  using LineTable = LinePairs;
#else
  using LineTable = LocationTable;
#endif
  const PyCodeObject* code = code_of(f);
  const int offset = offset_of(f);
  if (offset < 0) return static_cast<uint32_t>(std::max(0, code->co_firstlineno));
  return static_cast<uint32_t>(LineTable::line(
      reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(code->co_linetable)),
      static_cast<size_t>(PyBytes_GET_SIZE(code->co_linetable)), code->co_firstlineno, offset));
}

uint32_t lost() noexcept {
  g_frames_lost.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

Frame* next_python(Frame* f) noexcept {
  while (f && !is_python(f)) f = caller(f);
  return f;
}

// The node of a stack that was not seen yet, and its hash now that its code is known.
[[gnu::noinline]] uint32_t put_together(Frame* innermost, uint64_t& hash) noexcept {
  Frame* frames[kMaxDepth];
  uint32_t depth = 0;
  hash = 0;
  bool is_deeper = false;
  for (Frame* f = innermost; f; f = next_python(caller(f))) {
    if (depth == kMaxDepth) {
      is_deeper = true;
      break;
    }
    if (FrameTree::function_of(code_state(code_of(f))) == 0) return lost();
    hash = fold_frame(hash, f);  // once it is known
    frames[depth++] = f;
  }
  uint32_t node = 0;
  if (is_deeper) {
    const uint32_t function = g_frame_tree.function("", kOuter, 0, false);
    node = function ? g_frame_tree.child(0, function, 0) : 0;
    if (node == 0) return lost();
  }
  while (depth-- > 0) {
    Frame* f = frames[depth];
    if (!has_begun(f)) continue;
    const uint32_t function = FrameTree::function_of(g_frame_tree.code(code_of(f)));
    node = g_frame_tree.child(node, function, line_of(f));
    if (node == 0) return lost();
  }
  return node;
}

// Of a stack or a line (0: neither) and the module that runs, by what is hashed of both.
[[gnu::noinline]] uint32_t remembered(uint64_t hash, uint32_t python, uint32_t module) noexcept {
  const uint32_t node = module != 0 ? g_frame_tree.with_module(python, module) : python;
  if (node == 0) return lost();
  g_frame_tree.remember(hash, node);
  return node;
}

template <bool modules>
uint32_t current_stack(Frame* innermost) noexcept {
  uint64_t hash = 0;
  uint32_t depth = 0;
  ModuleCall call;
  for (Frame* f = innermost; f && depth < kMaxDepth; f = next_python(caller(f)), ++depth) {
    hash = fold_frame(hash, f);
    if constexpr (modules) call.look_at(f);
  }
  if (depth == 0) return 0;
  const uint32_t module = modules ? call.module() : 0;
  if (const uint32_t node = g_frame_tree.find(fold_module(hash, module))) return node;
  const uint32_t python = put_together(innermost, hash);
  return python != 0 || module != 0 ? remembered(fold_module(hash, module), python, module) : 0;
}

template <bool modules>
uint32_t current_line(Frame* innermost) noexcept {
  uint32_t depth = 0;
  Frame* line = nullptr;
  uint64_t state = 0;
  ModuleCall call;
  for (Frame* f = innermost; f && depth < kMaxDepth; f = next_python(caller(f)), ++depth) {
    if (!line) {
      state = code_state(code_of(f));
      if (FrameTree::function_of(state) == 0) return lost();
      if (FrameTree::is_user(state) && has_begun(f)) line = f;
    }
    if constexpr (modules) call.look_at(f);
    if (line && (!modules || call.is_found())) break;
  }
  const uint32_t module = modules ? call.module() : 0;
  if (!line && module == 0) return 0;
  const uint64_t hash = fold_module(line ? fold(fold(1, instruction(line)), state) : 2, module);
  if (const uint32_t node = g_frame_tree.find(hash)) return node;
  uint32_t python = 0;
  if (line) {
    python = g_frame_tree.child(0, FrameTree::function_of(state), line_of(line));
    if (python == 0) return lost();
  }
  return remembered(hash, python, module);
}

uint32_t module_of_call(Frame* innermost) noexcept {
  uint32_t depth = 0;
  ModuleCall call;
  for (Frame* f = innermost; f && !call.is_found() && depth < kMaxDepth; f = next_python(caller(f)), ++depth)
    call.look_at(f);
  return call.module();
}

uint32_t current_module(Frame* innermost) noexcept {
  const uint32_t module = module_of_call(innermost);
  if (module == 0) return 0;
  const uint64_t hash = fold_module(2, module);
  const uint32_t node = g_frame_tree.find(hash);
  return node != 0 ? node : remembered(hash, 0, module);
}

// Code objects die under the GIL, before another one can come to lie at their address.
#if PY_VERSION_HEX < 0x030c0000
destructor g_code_dealloc = nullptr;
void code_dealloc(PyObject* code) {
  g_frame_tree.code_dies(code);
  g_code_dealloc(code);
}
void watch_codes() {
  if (g_code_dealloc) return;
  g_code_dealloc = PyCode_Type.tp_dealloc;
  PyCode_Type.tp_dealloc = &code_dealloc;
}
#else
int on_code(PyCodeEvent event, PyCodeObject* code) {
  if (event == PY_CODE_EVENT_DESTROY) g_frame_tree.code_dies(code);
  return 0;
}
void watch_codes() {
  static const int watcher = PyCode_AddWatcher(&on_code);
  if (watcher >= 0) return;
  PyErr_Clear();
  throw Error(ErrorKind::kSession, "Python's lines are not available: every watcher of code objects is taken",
              "leave \"lines\" and \"stacks\" out of sources=");
}
#endif

template <FrameLevel level, bool modules>
uint32_t frame_here() noexcept {
  const PyThreadState* ts = PyGILState_GetThisThreadState();
  if (!ts) return 0;
  Frame* innermost = next_python(frames::innermost(ts));
  if constexpr (level == FrameLevel::kOff) return current_module(innermost);
  return level == FrameLevel::kLine ? current_line<modules>(innermost) : current_stack<modules>(innermost);
}

uint32_t module_here() noexcept {
  const PyThreadState* ts = PyGILState_GetThisThreadState();
  return ts ? module_of_call(next_python(frames::innermost(ts))) : 0;
}

FrameSource source_of(FrameLevel level, bool modules) noexcept {
  if (level == FrameLevel::kLine)
    return modules ? &frame_here<FrameLevel::kLine, true> : &frame_here<FrameLevel::kLine, false>;
  if (level == FrameLevel::kStack)
    return modules ? &frame_here<FrameLevel::kStack, true> : &frame_here<FrameLevel::kStack, false>;
  return modules ? &frame_here<FrameLevel::kOff, true> : nullptr;
}

}  // namespace

bool can_read_frames() {
#ifdef Py_GIL_DISABLED
  return false;
#else
  const std::string_view running = Py_GetVersion(), built = PY_VERSION;
  const auto minor = [](std::string_view version) { return version.substr(0, version.find('.', 2)); };
  return minor(running) == minor(built);
#endif
}

void prepare_frames() {
  g_frame_tree.map();
  watch_codes();
}

void start_frames(FrameLevel level, bool modules, const FrameOrigins& from) {
  prepare_frames();
  g_frame_tree.forget();
  if (modules) {
    g_module_table.map();
    g_module_table.forget();
    g_forward_modules.map();
    g_forward_modules.forget();
  }
  auto& prefixes = origins().prefixes;
  prefixes.clear();
  for (const auto& p : from.user) prefixes.emplace_back(p, true);  // first: they win where both say the same
  for (const auto& p : from.packages) prefixes.emplace_back(p, false);
  std::stable_sort(prefixes.begin(), prefixes.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  g_frames_lost.store(0);
  g_module_source.store(modules ? &module_here : nullptr);
  g_frame_source.store(source_of(level, modules));
}

uint32_t current_frame(FrameLevel level, bool modules) noexcept {
  const FrameSource source = source_of(level, modules);
  return source ? source() : 0;
}

}  // namespace cuptiprof
