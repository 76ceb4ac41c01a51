// The interpreter's frames of the calling thread, by version of CPython. Included by one file alone: it needs
// CPython's internal headers.
//
// Read without the GIL: a thread's frames are changed by that thread only, and what its frames run is kept
// alive by them. Nothing here counts references, allocates or calls into Python.
#pragma once
#define Py_BUILD_CORE 1
#include <Python.h>
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe_structs.h>
#elif PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#else
#include <frameobject.h>
#endif
#undef Py_BUILD_CORE

#include <cstdint>

namespace cuptiprof::frames {

#if PY_VERSION_HEX < 0x030b0000  // 3.10: frame objects (Include/cpython/frameobject.h: struct _frame)

using Frame = const PyFrameObject;
inline Frame* innermost(const PyThreadState* ts) noexcept { return ts->frame; }
inline Frame* caller(Frame* f) noexcept { return f->f_back; }
inline bool is_python(Frame*) noexcept { return true; }
inline PyCodeObject* code_of(Frame* f) noexcept { return f->f_code; }
// In bytes from the start of the code; negative: not begun.
inline int offset_of(Frame* f) noexcept { return f->f_lasti * static_cast<int>(sizeof(_Py_CODEUNIT)); }
inline bool has_begun(Frame*) noexcept { return true; }
// A number that no other instruction of any living code object has.
inline uint64_t instruction(Frame* f) noexcept {
  return reinterpret_cast<uint64_t>(f->f_code) ^ static_cast<uint64_t>(static_cast<uint32_t>(f->f_lasti))
                                                     << 40;
}
// The first argument, which nothing else shares (no cell); null: not set.
inline PyObject* first_local(Frame* f) noexcept { return f->f_localsplus[0]; }

#else  // 3.11 on: _PyInterpreterFrame (Include/internal/pycore_frame.h, 3.14: pycore_interpframe_structs.h)

using Frame = const _PyInterpreterFrame;
inline Frame* innermost(const PyThreadState* ts) noexcept {
#if PY_VERSION_HEX < 0x030d0000
  return ts->cframe->current_frame;
#else
  return ts->current_frame;
#endif
}
inline Frame* caller(Frame* f) noexcept { return f->previous; }
// Not one that the interpreter put between C and Python (3.12: FRAME_OWNED_BY_CSTACK, 3.14:
// FRAME_OWNED_BY_INTERPRETER and above).
inline bool is_python(Frame* f) noexcept { return f->owner <= FRAME_OWNED_BY_FRAME_OBJECT; }
inline PyCodeObject* code_of(Frame* f) noexcept {
#if PY_VERSION_HEX < 0x030d0000
  return f->f_code;
#elif PY_VERSION_HEX < 0x030e0000
  return reinterpret_cast<PyCodeObject*>(f->f_executable);
#else
  // The low bits of a _PyStackRef are tags (Include/internal/pycore_stackref.h: Py_TAG_BITS).
  return reinterpret_cast<PyCodeObject*>(f->f_executable.bits & ~uintptr_t{3});
#endif
}
inline const _Py_CODEUNIT* instruction_pointer(Frame* f) noexcept {
#if PY_VERSION_HEX < 0x030d0000
  return f->prev_instr;
#else
  return f->instr_ptr;
#endif
}
inline const _Py_CODEUNIT* first_instruction(Frame* f) noexcept {
  return reinterpret_cast<const _Py_CODEUNIT*>(code_of(f)->co_code_adaptive);
}
inline int offset_of(Frame* f) noexcept {
  return static_cast<int>((instruction_pointer(f) - first_instruction(f)) *
                          static_cast<ptrdiff_t>(sizeof(_Py_CODEUNIT)));
}
// sys._getframe() passes over frames that still make their cells or their generator.
inline bool has_begun(Frame* f) noexcept {
  return f->owner == FRAME_OWNED_BY_GENERATOR ||
         instruction_pointer(f) >= first_instruction(f) + code_of(f)->_co_firsttraceable;
}
inline uint64_t instruction(Frame* f) noexcept { return reinterpret_cast<uint64_t>(instruction_pointer(f)); }
inline PyObject* first_local(Frame* f) noexcept {
#if PY_VERSION_HEX < 0x030e0000
  return f->localsplus[0];
#else
  return reinterpret_cast<PyObject*>(f->localsplus[0].bits & ~uintptr_t{3});
#endif
}

#endif

}  // namespace cuptiprof::frames
