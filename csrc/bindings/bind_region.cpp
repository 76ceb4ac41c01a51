// cuptiprof.region: a hand-written heap type, because its enter and exit are on everybody's hot path.
//
// While nothing collects, an entry and an exit are one load and a branch each. While a session collects, each
// writes one 32-byte event into the thread's ring. The name is looked up (text -> ID) at most once per text
// and process.
#include <Python.h>

#include <cmath>

#include "bindings/bindings.h"
#include "collect/nvtx/listener.h"
#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"

#ifndef Py_BEGIN_CRITICAL_SECTION  // before Python 3.13: the GIL guards every object
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

namespace cuptiprof {
namespace {

// One object may be entered again while it is open, on several threads, and before a session starts: each
// exit must find its own entry.
struct Entry {
  uint64_t id;         // what enter_region returned; 0: not recorded
  const void* thread;  // that entered
};

struct Region {
  PyObject_HEAD PyObject* name;  // str
  PyObject* metadata;            // dict or null
  PyObject* nvtx;                // str to push to NVTX, or null
  uint32_t name_id;              // below g_first_label: to be looked up
  uint32_t depth;                // entries not yet left, of all threads
  Entry first;                   // the oldest of them
  Entry* more;                   // the others
  uint32_t room;                 // of `more`
};

PyObject* g_ids = nullptr;       // dict: name -> int
PyObject* g_encode = nullptr;    // cuptiprof.regions.metadata.encode_metadata
PyObject* g_decorate = nullptr;  // cuptiprof.regions.region.decorate
PyObject* g_name_of = nullptr;   // cuptiprof.regions.metadata.name_of
PyTypeObject* g_type = nullptr;

// `with region("x")` makes an object and drops it again each time: the last few are kept for the next ones.
// Guarded by the GIL.
constexpr size_t kSpares = 16;
PyObject* g_spares[kSpares];
size_t g_spare_count = 0;

PyObject* allocate(PyTypeObject* type) {
#ifndef Py_GIL_DISABLED
  if (g_spare_count > 0 && type == g_type) {
    auto* self = reinterpret_cast<Region*>(PyObject_Init(g_spares[--g_spare_count], type));
    self->name = self->metadata = self->nvtx = nullptr;
    self->name_id = self->depth = 0;
    return reinterpret_cast<PyObject*>(self);
  }
#endif
  return type->tp_alloc(type, 0);
}

void give_back(PyTypeObject* type, PyObject* object) {
#ifndef Py_GIL_DISABLED
  if (g_spare_count < kSpares && type == g_type) {
    g_spares[g_spare_count++] = object;
    return;
  }
#endif
  type->tp_free(object);
}

// How a Context of CPython 3.7 to 3.14 begins.
struct ContextHead {
  PyObject_HEAD void* previous;
  void* variables;
  void* weak_references;
  int entered;
};

// Python runs all of a thread inside a Context of its own (3.14: sys.flags.thread_inherit_context).
bool g_threads_have_contexts = false;

// Identity of the running contextvars.Context; 0 on the outermost one of a thread, and on threads without
// Python.
//
// asyncio runs every step of a task inside the task's Context, so the pointer tells tasks apart. A thread
// that does nothing but run an event loop has no Context around them: the outermost one is that which nobody
// entered (Python made it when it was first needed). Read without the GIL on the thread that owns it: nobody
// else changes it.
uint64_t task_of(PyThreadState* ts) {
  if (!ts) return 0;
  PyObject* context = ts->context;
  if (!context) return 0;
  const auto* head = reinterpret_cast<const ContextHead*>(context);
  const bool inner = head->previous || (head->entered && !g_threads_have_contexts);
  return inner ? reinterpret_cast<uint64_t>(context) : 0;
}

uint64_t current_task() { return task_of(PyGILState_GetThisThreadState()); }

bool threads_have_contexts() {
  PyObject* flags = PySys_GetObject("flags");
  PyObject* flag = flags ? PyObject_GetAttrString(flags, "thread_inherit_context") : nullptr;
  if (!flag) PyErr_Clear();  // before Python 3.14
  const bool on = flag && PyObject_IsTrue(flag) == 1;
  Py_XDECREF(flag);
  return on;
}

bool look_up(Region* self) {
  static uint32_t first_known = 0;  // of the IDs in g_ids; guarded by the GIL
  if (const uint32_t first = g_first_label.load(std::memory_order_relaxed); first != first_known) {
    PyDict_Clear(g_ids);
    first_known = first;
  }
  if (PyObject* known = PyDict_GetItemWithError(g_ids, self->name)) {
    self->name_id = static_cast<uint32_t>(PyLong_AsUnsignedLong(known));
    return true;
  }
  if (PyErr_Occurred()) return false;
  // Lone surrogates (of a file name that is not UTF-8) are shown as escapes: entering a region raises nothing
  // that it would not raise while nobody profiles.
  PyObject* bytes = PyUnicode_AsEncodedString(self->name, "utf-8", "backslashreplace");
  if (!bytes) return false;
  const std::string_view name(PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes)));
  self->name_id = region_label_id(name);
  const bool has_room = scope_label(self->name_id).name == name;
  Py_DECREF(bytes);
  if (!has_room) return true;  // neither has it here
  PyObject* id = PyLong_FromUnsignedLong(self->name_id);
  const bool ok = id && PyDict_SetItem(g_ids, self->name, id) == 0;
  Py_XDECREF(id);
  return ok;
}

// An annotation raises nothing into the program. Ctrl-C passes, and so does what says that memory has run
// out. True: the exception was of the other kind, and is forgotten.
bool forgive() {
  if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return false;
  PyErr_Clear();
  return true;
}

// What is no number, too large for a double, or raises when asked for its value is unknown, and counted.
double number_or_nan(PyObject* dict, const char* key) {
  PyObject* value = PyDict_GetItemString(dict, key);
  if (!value) return std::nan("");
  const double d = PyFloat_AsDouble(value);
  if (!PyErr_Occurred()) return d;
  if (forgive()) count(g_metadata_dropped);
  return std::nan("");
}

// The caller's to delete, or to give to enter_region. Null with an exception set on failure.
RegionMetadata* metadata_of(PyObject* dict) {
  const double flops = number_or_nan(dict, "flops");
  if (PyErr_Occurred()) return nullptr;
  const double bytes = number_or_nan(dict, "bytes");
  if (PyErr_Occurred()) return nullptr;
  PyObject* encoded = PyObject_CallOneArg(g_encode, dict);
  if (!encoded) return nullptr;
  PyObject* json = nullptr;
  unsigned int as_text = 0, dropped = 0;
  RegionMetadata* out = nullptr;
  Py_ssize_t length = 0;
  const char* text = PyArg_ParseTuple(encoded, "UII", &json, &as_text, &dropped)
                         ? PyUnicode_AsUTF8AndSize(json, &length)
                         : nullptr;
  if (text) {
    if (as_text) count(g_metadata_as_text, as_text);
    if (dropped) count(g_metadata_dropped, dropped);
    // The event's from enter_region on: the decoder deletes it with the event.
    out = new RegionMetadata{flops, bytes, {text, static_cast<size_t>(length)}};
  }
  Py_DECREF(encoded);
  return out;
}

PyObject* nvtx_call(const char* function, PyObject* argument) {
  static PyObject* module = PyImport_ImportModule("nvtx");
  if (!module) return nullptr;
  const OwnNvtxCall own;  // the region is recorded already
  return argument ? PyObject_CallMethod(module, function, "O", argument)
                  : PyObject_CallMethod(module, function, nullptr);
}

// What tells the calling thread from others, at the price of one load. After its end another thread may have
// the same.
const void* this_thread() {
  static thread_local char here [[gnu::tls_model("initial-exec")]] = 0;
  return &here;
}

// The i-th entry from the oldest.
Entry& entry(Region* self, uint32_t i) { return i == 0 ? self->first : self->more[i - 1]; }

// Room for one more entry. False with an exception set.
[[gnu::noinline]] bool make_room(Region* self) {
  const uint32_t room = self->room ? self->room * 2 : 4;
  auto* more = static_cast<Entry*>(PyMem_Realloc(self->more, room * sizeof(Entry)));
  if (!more) {
    PyErr_NoMemory();
    return false;
  }
  self->more = more;
  self->room = room;
  return true;
}

// The newest entry of this thread goes; of one left on another thread than it was entered on, the newest.
[[gnu::noinline]] uint64_t take_one_of_several(Region* self) {
  if (self->depth == 0) return 0;  // more exits than entries
  uint32_t i = self->depth;
  while (i > 0 && entry(self, i - 1).thread != this_thread()) --i;
  if (i == 0) i = self->depth;
  const uint64_t id = entry(self, i - 1).id;
  for (; i < self->depth; ++i) entry(self, i - 1) = entry(self, i);
  --self->depth;
  return id;
}

uint64_t take_entry(Region* self) {
  if (self->depth != 1) [[unlikely]]
    return take_one_of_several(self);
  self->depth = 0;
  return self->first.id;  // on whatever thread
}

bool open_entry(Region* self) {
  if (self->depth > self->room && !make_room(self)) [[unlikely]]
    return false;
  uint64_t id = 0;
  if (g_region_mode.load(std::memory_order_relaxed) & kRegionsOn) {
    RegionMetadata* metadata = nullptr;
    if (self->metadata && !(metadata = metadata_of(self->metadata))) return false;
    // From here on the GIL is kept, so that no session ends in between and forgets the name.
    if (self->name_id < g_first_label.load(std::memory_order_relaxed) && !look_up(self)) {
      delete metadata;
      return false;
    }
    const uint32_t mode = g_region_mode.load(std::memory_order_relaxed);
    id = enter_region(mode, self->name_id, metadata, task_of(PyThreadState_Get()));
  }
  const uint32_t depth = self->depth++;
  (depth == 0 ? self->first : self->more[depth - 1]) = Entry{id, this_thread()};
  return true;
}

PyObject* region_enter(PyObject* object, PyObject*) {
  auto* self = reinterpret_cast<Region*>(object);
  bool ok;
  Py_BEGIN_CRITICAL_SECTION(object);
  ok = open_entry(self);
  Py_END_CRITICAL_SECTION();
  if (!ok) return nullptr;
  if (self->nvtx) {
    PyObject* r = nvtx_call("push_range", self->nvtx);
    if (!r && !forgive()) return nullptr;
    if (!r) Py_CLEAR(self->nvtx);  // then there is nothing to pop
    Py_XDECREF(r);
  }
  Py_INCREF(object);
  return object;
}

PyObject* region_exit(PyObject* object, PyObject* const*, Py_ssize_t) {
  auto* self = reinterpret_cast<Region*>(object);
  uint64_t id;
  Py_BEGIN_CRITICAL_SECTION(object);
  id = take_entry(self);
  Py_END_CRITICAL_SECTION();
  if (id != 0) exit_region(id, task_of(PyThreadState_Get()));
  if (self->nvtx) {
    PyObject* r = nvtx_call("pop_range", nullptr);
    if (!r && !forgive()) return nullptr;
    Py_XDECREF(r);
  }
  Py_RETURN_FALSE;
}

PyObject* region_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* function = nullptr;
  static const char* names[] = {"function", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:region", const_cast<char**>(names), &function))
    return nullptr;
  return PyObject_CallFunctionObjArgs(g_decorate, self, function, nullptr);
}

enum class Nvtx : bool { kNo, kYes };  // whether the region is an NVTX range too

// A new region; `metadata`: dict or null. Null with an exception set.
PyObject* make(PyTypeObject* type, PyObject* name, PyObject* metadata, Nvtx nvtx);

// Not a str: a function, which is decorated (`@region`), or whatever else, under a text that stands for it.
[[gnu::noinline]] PyObject* make_of_other(PyTypeObject* type, PyObject* given, PyObject* metadata,
                                          Nvtx nvtx) {
  PyObject* found = PyObject_CallOneArg(g_name_of, given);
  if (!found) return nullptr;
  PyObject* name = nullptr;
  int is_function = 0;
  PyObject* out = nullptr;
  if (PyArg_ParseTuple(found, "Up", &name, &is_function)) out = make(type, name, metadata, nvtx);
  if (out && is_function) Py_SETREF(out, PyObject_CallFunctionObjArgs(g_decorate, out, given, nullptr));
  Py_DECREF(found);
  return out;
}

PyObject* make(PyTypeObject* type, PyObject* name, PyObject* metadata, Nvtx nvtx) {
  if (!PyUnicode_Check(name)) [[unlikely]]
    return make_of_other(type, name, metadata, nvtx);
  PyObject* object = allocate(type);
  if (!object) return nullptr;
  auto* self = reinterpret_cast<Region*>(object);
  Py_INCREF(name);
  self->name = name;
  Py_XINCREF(metadata);
  self->metadata = metadata;
  if (nvtx == Nvtx::kYes) {
    Py_INCREF(name);
    self->nvtx = name;
  }
  return object;
}

// region(name, *, flops=None, bytes=None, nvtx=False, **metadata)
PyObject* region_vectorcall(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  const Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  auto* cls = reinterpret_cast<PyTypeObject*>(type);
  if (nargs == 1 && nkw == 0) return make(cls, args[0], nullptr, Nvtx::kNo);
  if (nargs > 1) {
    PyErr_Format(PyExc_TypeError, "region() takes one positional argument, the name (%zd given)", nargs);
    return nullptr;
  }
  PyObject* name = nargs == 1 ? args[0] : nullptr;
  PyObject* metadata = nullptr;
  Nvtx nvtx = Nvtx::kNo;
  for (Py_ssize_t i = 0; i < nkw; ++i) {
    PyObject* key = PyTuple_GET_ITEM(kwnames, i);
    PyObject* value = args[nargs + i];
    if (!name && PyUnicode_CompareWithASCIIString(key, "name") == 0) {
      name = value;
    } else if (PyUnicode_CompareWithASCIIString(key, "nvtx") == 0) {
      const int truth = PyObject_IsTrue(value);
      if (truth < 0 && !forgive()) {
        Py_XDECREF(metadata);
        return nullptr;
      }
      nvtx = truth > 0 ? Nvtx::kYes : Nvtx::kNo;
    } else if (value != Py_None) {
      if (!metadata && !(metadata = PyDict_New())) return nullptr;
      if (PyDict_SetItem(metadata, key, value) < 0) {
        Py_DECREF(metadata);
        return nullptr;
      }
    }
  }
  if (!name) {
    Py_XDECREF(metadata);
    PyErr_SetString(PyExc_TypeError, "region() needs a name");
    return nullptr;
  }
  PyObject* object = make(cls, name, metadata, nvtx);
  Py_XDECREF(metadata);
  return object;
}

PyObject* region_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  // Reached by subclasses only; the type itself is called through region_vectorcall.
  if (PyTuple_GET_SIZE(args) != 1) {
    PyErr_SetString(PyExc_TypeError, "region() takes one positional argument, the name");
    return nullptr;
  }
  return make(type, PyTuple_GET_ITEM(args, 0), kwargs, Nvtx::kNo);
}

void region_dealloc(PyObject* object) {
  auto* self = reinterpret_cast<Region*>(object);
  PyTypeObject* type = Py_TYPE(object);
  Py_XDECREF(self->name);
  Py_XDECREF(self->metadata);
  Py_XDECREF(self->nvtx);
  if (self->more) [[unlikely]] {
    PyMem_Free(self->more);
    self->more = nullptr;
    self->room = 0;
  }
  give_back(type, object);
  Py_DECREF(type);
}

PyObject* region_repr(PyObject* object) {
  return PyUnicode_FromFormat("cuptiprof.region(%R)", reinterpret_cast<Region*>(object)->name);
}

PyObject* region_name_of(PyObject* object, void*) {
  PyObject* name = reinterpret_cast<Region*>(object)->name;
  Py_INCREF(name);
  return name;
}

PyObject* region_copy(PyObject* object, PyObject*) {
  auto* self = reinterpret_cast<Region*>(object);
  return make(Py_TYPE(object), self->name, self->metadata, self->nvtx ? Nvtx::kYes : Nvtx::kNo);
}

PyMethodDef kMethods[] = {
    {"__enter__", region_enter, METH_NOARGS, "Open the region on the calling thread."},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(region_exit)), METH_FASTCALL,
     "Close it; exceptions pass through."},
    {"_again", region_copy, METH_NOARGS, "A fresh region of the same name and metadata (for decorators)."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef kGetSet[] = {{"name", region_name_of, nullptr, "The name, str.", nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};

const char kDoc[] =
    "region(name, *, flops=None, bytes=None, nvtx=False, **metadata)\n--\n\n"
    "Marks the GPU work launched inside as belonging to `name`: a context manager and a decorator.\n\n"
    "Regions nest; each thread and each asyncio task has a stack of its own. A kernel belongs to the "
    "innermost region\n"
    "open on its launching thread at launch. `flops` (operations) and `bytes` (moved) are what the region's "
    "work needs\n"
    "by your own count; reports turn them into rates. Any other keyword is carried into the `regions` "
    "table:\n"
    "str, numbers, bools and short lists of them as they are, everything else as text. What cannot be "
    "written\n"
    "is left out and counted; no value raises. With nvtx=True the region is also an NVTX range, so that "
    "nsys\n"
    "shows it.\n\n"
    "`@region` without parentheses names the region after the function.\n\n"
    "Costs two loads when nothing is being collected.\n";

PyType_Slot kSlots[] = {{Py_tp_doc, const_cast<char*>(kDoc)},
                        {Py_tp_new, reinterpret_cast<void*>(region_new)},
                        {Py_tp_dealloc, reinterpret_cast<void*>(region_dealloc)},
                        {Py_tp_repr, reinterpret_cast<void*>(region_repr)},
                        {Py_tp_call, reinterpret_cast<void*>(region_call)},
                        {Py_tp_methods, kMethods},
                        {Py_tp_getset, kGetSet},
                        {0, nullptr}};

PyType_Spec kSpec = {"cuptiprof.region", sizeof(Region), 0, Py_TPFLAGS_DEFAULT, kSlots};

}  // namespace

void forget_region_ids() { PyDict_Clear(g_ids); }

void register_region(pybind11::module_& m) {
  g_ids = PyDict_New();
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
  if (!type || !g_ids) throw pybind11::error_already_set();
  type->tp_vectorcall = region_vectorcall;
  g_type = type;
  m.add_object("region", reinterpret_cast<PyObject*>(type));
  g_task_key.store(&current_task);
  register_hand_over(m);
  g_threads_have_contexts = threads_have_contexts();
  m.def(
      "_region_hooks",
      [](pybind11::object encode, pybind11::object decorate, pybind11::object name_of) {
        g_encode = encode.release().ptr();
        g_decorate = decorate.release().ptr();
        g_name_of = name_of.release().ptr();
      },
      "Set once: how metadata becomes JSON, how a function is decorated, and what stands for a name that is "
      "no "
      "str.");
}

}  // namespace cuptiprof
