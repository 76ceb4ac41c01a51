#include "bindings/frames/module_objects.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bindings/frames/interpreter_frames.h"
#include "threads/module_table.h"

namespace cuptiprof {
namespace {

constexpr Py_ssize_t kUnheld = 1;  // references to an object that nobody holds, when its end is told

// A reference; null: Python raised, or there is none.
class Owned {
 public:
  explicit Owned(PyObject* reference) noexcept : x_object(reference) {}
  static Owned of(PyObject* object) noexcept { return Owned(Py_NewRef(object)); }
  Owned(Owned&& other) noexcept : x_object(std::exchange(other.x_object, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(x_object, other.x_object);
    return *this;
  }
  ~Owned() { Py_XDECREF(x_object); }
  [[nodiscard]] PyObject* get() const noexcept { return x_object; }
  PyObject* release() noexcept { return std::exchange(x_object, nullptr); }
  explicit operator bool() const noexcept { return x_object; }

 private:
  PyObject* x_object;
};

// Of a session, each a reference; changed with the GIL.
PyObject* g_class = nullptr;        // torch.nn.Module
PyObject* g_del = nullptr;          // what is its __del__ meanwhile
PyObject* g_call = nullptr;         // g_module_call
PyObject* g_recomputing = nullptr;  // g_recomputing_call
std::atomic<bool> g_asked{false};

bool is_module(PyObject* o) noexcept {
  return g_class && o && PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(g_class));
}

std::string utf8_of(PyObject* text) noexcept {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data) return {data, static_cast<size_t>(size)};
  PyErr_Clear();  // lone surrogates
  return "?";
}

std::string class_name(PyObject* o) {
  const std::string_view name = Py_TYPE(o)->tp_name;
  return std::string(name.substr(name.rfind('.') + 1));
}

// Modules that lie directly in this one, in order. No code of the user runs: neither properties nor
// __getattr__.
std::vector<std::pair<std::string, PyObject*>> children(PyObject* module) {
  std::vector<std::pair<std::string, PyObject*>> out;
  const Owned dict(PyObject_GenericGetDict(module, nullptr));
  if (!dict) PyErr_Clear();
  PyObject* modules =
      dict && PyDict_Check(dict.get()) ? PyDict_GetItemString(dict.get(), "_modules") : nullptr;
  if (!modules || !PyDict_Check(modules)) return out;
  PyObject *name = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(modules, &at, &name, &value);)
    if (PyUnicode_Check(name) && is_module(value)) out.emplace_back(utf8_of(name), value);
  return out;
}

PyObject* child_of(PyObject* module, std::string_view name) {
  for (const auto& [child_name, child] : children(module))
    if (child_name == name) return child;
  return nullptr;
}

// 0: there is no room.
uint32_t number_of(PyObject* module) noexcept { return g_module_table.number(module, Py_TYPE(module)); }

PyObject* del_module(PyObject* self, PyObject*) noexcept;
PyMethodDef g_del_def{"__del__", &del_module, METH_NOARGS, "Tells cuptiprof that the module dies."};

// Whether this class tells of its objects' deaths: not where it has a __del__ of its own.
bool tells_deaths(PyObject* o) {
  const Owned found(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__del__"));
  if (!found) PyErr_Clear();
  return found.get() == g_del;
}

// Names what lies in `root` and has no name, as torch's named_modules() would: of several places the first.
void name_tree(PyObject* root) {
  struct Place {
    PyObject* module;
    std::string root_class, path;
    uint32_t root;
  };
  std::unordered_set<PyObject*> seen;
  std::vector<Place> todo;
  todo.push_back({root, class_name(root), "", number_of(root)});
  while (!todo.empty()) {
    Place at = std::move(todo.back());
    todo.pop_back();
    if (!seen.insert(at.module).second) continue;
    const uint32_t number = number_of(at.module);
    if (number == 0 || at.root == 0) return;
    if (g_module_table.is_named(number)) {
      const ModuleName name = g_module_table.name(number);
      at.root_class = name.root_class;
      at.path = name.path;
      at.root = name.root;
    } else if (tells_deaths(at.module)) {
      g_module_table.set_name(number, {at.root_class, at.path, at.root});
    }
    const auto below = children(at.module);
    for (auto child = below.rbegin(); child != below.rend(); ++child)
      todo.push_back({child->second, at.root_class,
                      at.path.empty() ? child->first : at.path + "." + child->first, at.root});
  }
}

// Whether the module of this number still is where its name says. From now on one that is not is another.
void check_place(uint32_t number, PyObject* root) {
  const ModuleName name = g_module_table.name(number);
  PyObject* at = root;
  for (size_t begin = 0; at && begin < name.path.size();) {
    size_t end = name.path.find('.', begin);
    if (end == name.path.npos) end = name.path.size();
    at = child_of(at, name.path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (at && g_module_table.find(at) == number) return;
  ModuleRecord& record = g_module_table.record(number);
  record.is_moved.store(1);
  if (const void* address = record.address.load(); g_module_table.find(address) == number)
    g_module_table.dies(address);
}

// Those that launches saw in the tree of this module.
void check_places_below(PyObject* root, uint32_t number) {
  for (uint32_t n = 1; n <= g_module_table.size(); ++n) {
    const ModuleRecord& record = g_module_table.record(n);
    if (n != number && record.used.load() != 0 && record.died.load() == 0 &&
        g_module_table.name(n).root == number)
      check_place(n, root);
  }
}

// Parts of an outermost module that dies may live on: as something else.
void forget_parts(PyObject* module, uint32_t root) {
  for (const auto& [name, child] : children(module)) {
    const uint32_t number = g_module_table.find(child);
    if (number == 0 || !g_module_table.is_named(number) || g_module_table.name(number).root != root) continue;
    g_module_table.dies(child);
    forget_parts(child, root);
  }
}

// Whether this module that dies is not a part of another. Where a cycle is collected, children may be told of
// before their parents, who still hold them: then nobody knows.
bool is_outermost(PyObject* module, uint32_t number) {
  return number != 0 && g_module_table.is_named(number) ? g_module_table.name(number).root == number
                                                        : Py_REFCNT(module) <= kUnheld;
}

// Called by Python when a module dies, while it can still be looked at.
PyObject* del_module(PyObject* self, PyObject*) noexcept {
  const uint32_t number = g_module_table.find(self);
  const bool has_nameless = g_module_table.has_nameless();
  if ((number == 0 && !has_nameless) || !is_module(self)) Py_RETURN_NONE;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  try {
    if (is_outermost(self, number)) {
      if (has_nameless) name_tree(self);  // launches may have seen its parts
      if (const uint32_t root = g_module_table.find(self); root != 0 && !children(self).empty()) {
        check_places_below(self, root);
        forget_parts(self, root);
      }
    }
  } catch (...) {
    PyErr_Clear();
  }
  g_module_table.dies(self);
  PyErr_Restore(type, value, traceback);
  Py_RETURN_NONE;
}

// False: Python raised.
bool living_modules(std::vector<Owned>& out) {
  const Owned gc(PyImport_ImportModule("gc"));
  const Owned all(gc ? PyObject_CallMethod(gc.get(), "get_objects", nullptr) : nullptr);
  if (!all) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); ++i)
    if (PyObject* o = PyList_GET_ITEM(all.get(), i); is_module(o)) out.push_back(Owned::of(o));
  return true;
}

// The modules whose calls run on this thread, the innermost first.
std::vector<Owned> running_modules() {
  std::vector<Owned> out;
  const PyCodeObject* call = g_module_call.load();
  for (frames::Frame* f = frames::innermost(PyThreadState_Get()); f; f = frames::caller(f)) {
    if (!frames::is_python(f) || frames::code_of(f) != call) continue;
    if (PyObject* self = frames::first_local(f); is_module(self)) out.push_back(Owned::of(self));
  }
  return out;
}

// On the main thread, between two instructions of Python.
int name_running_modules(void*) noexcept {
  g_asked.store(false);
  if (!g_module_call.load()) return 0;
  try {
    const std::vector<Owned> running = running_modules();
    PyObject* around = nullptr;
    for (auto module = running.rbegin(); module != running.rend(); ++module) {
      const uint32_t number = number_of(module->get());
      if (number != 0 && !g_module_table.is_named(number)) {
        if (around) name_tree(around);  // it may have come to lie there
        name_tree(module->get());
      }
      around = module->get();
    }
  } catch (...) {
    PyErr_Clear();
  }
  return 0;
}

// By number of an outermost module: what tells it from others of its class that lived at the same time,
// from 1.
std::map<uint32_t, uint32_t> ordinals(const std::map<uint32_t, ModuleName>& named) {
  struct Root {
    uint32_t number, first_use, died;
  };
  std::map<std::string_view, std::vector<Root>> by_class;
  for (const auto& [number, name] : named) {
    auto& roots = by_class[name.root_class];
    const uint32_t used = g_module_table.record(number).used.load();
    const auto known =
        std::find_if(roots.begin(), roots.end(), [&](const Root& r) { return r.number == name.root; });
    if (known == roots.end()) {
      const uint32_t died = g_module_table.record(name.root).died.load();
      roots.push_back({name.root, used, died != 0 ? died : ~0u});
    } else {
      known->first_use = std::min(known->first_use, used);
    }
  }
  std::map<uint32_t, uint32_t> out;
  for (auto& [name, roots] : by_class) {
    std::sort(roots.begin(), roots.end(),
              [](const Root& a, const Root& b) { return a.first_use < b.first_use; });
    std::vector<uint32_t> held_until;  // by ordinal - 1
    for (const Root& root : roots) {
      const auto free = std::find_if(held_until.begin(), held_until.end(),
                                     [&](uint32_t until) { return until < root.first_use; });
      out[root.number] = static_cast<uint32_t>(free - held_until.begin()) + 1;
      if (free == held_until.end())
        held_until.push_back(root.died);
      else
        *free = root.died;
    }
  }
  return out;
}

}  // namespace

bool watch_modules(PyObject* module_class, PyObject* call) {
  unwatch_modules();
  g_module_table.map();
  Owned method(PyDescr_NewMethod(&PyBaseObject_Type, &g_del_def));
  if (!method || PyObject_SetAttrString(module_class, "__del__", method.get()) != 0) return false;
  g_del = method.release();
  g_class = Py_NewRef(module_class);
  g_call = Py_NewRef(call);
  g_module_call.store(reinterpret_cast<const PyCodeObject*>(call));
  return true;
}

void watch_recomputing(PyObject* call) {
  PyObject* before = std::exchange(g_recomputing, Py_NewRef(call));
  g_recomputing_call.store(reinterpret_cast<const PyCodeObject*>(call));
  Py_XDECREF(before);
}

void unwatch_modules() noexcept {
  g_module_call.store(nullptr);
  g_recomputing_call.store(nullptr);
  Py_CLEAR(g_recomputing);
  if (!g_class) return;
  // What somebody else put there stays.
  if (PyDict_GetItemString(reinterpret_cast<PyTypeObject*>(g_class)->tp_dict, "__del__") == g_del)
    PyObject_SetAttrString(g_class, "__del__", nullptr);
  PyErr_Clear();
  Py_CLEAR(g_del);
  Py_CLEAR(g_call);
  Py_CLEAR(g_class);
}

bool name_living_modules() {
  if (!g_class) return true;
  g_module_table.forget_nameless();
  std::vector<Owned> modules;
  if (!living_modules(modules)) return false;
  std::unordered_set<PyObject*> inside;
  for (const Owned& module : modules)
    for (const auto& [name, child] : children(module.get())) inside.insert(child);
  for (const Owned& module : modules)
    if (!inside.contains(module.get())) name_tree(module.get());
  std::unordered_map<uint32_t, PyObject*> living;
  for (const Owned& module : modules) {
    const uint32_t number = number_of(module.get());
    if (number != 0 && !g_module_table.is_named(number)) name_tree(module.get());  // they lie in each other
    living[number] = module.get();
  }
  for (uint32_t n = 1; n <= g_module_table.size(); ++n) {
    const ModuleRecord& record = g_module_table.record(n);
    if (record.used.load() == 0 || record.died.load() != 0 || !g_module_table.is_named(n)) continue;
    const auto root = living.find(g_module_table.name(n).root);
    if (root != living.end()) check_place(n, root->second);
  }
  return true;
}

void ask_for_names() noexcept {
  if (g_asked.exchange(true)) return;
  if (Py_AddPendingCall(&name_running_modules, nullptr) != 0) g_asked.store(false);
}

const PyObject* argument_of_call(const PyCodeObject* call) noexcept {
  const PyThreadState* ts = PyGILState_GetThisThreadState();
  for (frames::Frame* f = ts ? frames::innermost(ts) : nullptr; f; f = frames::caller(f))
    if (frames::is_python(f) && frames::code_of(f) == call) return frames::first_local(f);
  return nullptr;
}

std::map<uint32_t, std::string> module_names() {
  std::map<uint32_t, ModuleName> named;
  for (uint32_t n = 1; n <= g_module_table.size(); ++n) {
    const ModuleRecord& record = g_module_table.record(n);
    if (record.used.load() != 0 && record.is_moved.load() == 0 && g_module_table.is_named(n))
      named[n] = g_module_table.name(n);
  }
  const std::map<uint32_t, uint32_t> ordinal = ordinals(named);
  std::map<uint32_t, std::string> out;
  for (const auto& [number, name] : named) {
    std::string text(name.root_class);
    if (const uint32_t k = ordinal.at(name.root); k > 1) text += "#" + std::to_string(k);
    if (!name.path.empty()) text.append(".").append(name.path);
    out[number] = std::move(text);
  }
  return out;
}

}  // namespace cuptiprof
