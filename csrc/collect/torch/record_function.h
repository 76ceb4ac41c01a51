// What we use of at::RecordFunction, PyTorch's own hook around operators: declared by us and found at run
// time in the libtorch_cpu.so of the process, so that one binary serves all versions of torch and links none.
//
// The declarations are those of torch 2.4 to 2.15 (ATen/record_function.h). Where its fields are differs
// between builds; who attaches finds out by a trial (operator_trial.h).
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace cuptiprof::torch {

struct RecordFunction;  // an at::RecordFunction

// at::RecordScope, by its place among the scopes of a callback.
inline constexpr size_t kScopes = 10;
inline constexpr uint8_t kFunctionScope = 0, kBackwardScope = 1, kScriptScope = 2;

// As std::unique_ptr<at::ObserverContext>, which a callback returns through a hidden pointer because it is
// not trivially destructible. Ours is always null: torch frees nothing.
struct NoContext {
  void* context = nullptr;
  NoContext() = default;
  NoContext(const NoContext&) = delete;
  ~NoContext() {}
};
using StartCallback = NoContext (*)(const RecordFunction&);
using EndCallback = void (*)(const RecordFunction&, void*);

// As at::RecordFunctionCallback, which is passed by value.
struct Callback {
  StartCallback start;
  EndCallback end;
  double sampling_probability = 1.0;
  std::array<bool, kScopes> scopes{};
  bool needs_inputs = false, needs_outputs = false, needs_ids = false;
};
static_assert(sizeof(Callback) == 40);

struct Library {
  uint64_t (*add_global_callback)(Callback) = nullptr;
  void (*remove_callback)(uint64_t) = nullptr;
  const char* (*name)(const RecordFunction*) = nullptr;
  uint64_t (*current_thread)() = nullptr;  // torch's own number of the calling thread, from 1
  uint64_t (*next_node)() = nullptr;       // number of the node of backward that this thread makes next
  void* handle = nullptr;                  // dlopen's

  explicit operator bool() const { return add_global_callback != nullptr; }
};
// Of the libtorch_cpu.so that this process has loaded, by its path or else by its name. Empty: there is none,
// or it has not all of these functions.
Library find_library(const std::string& path);

// Where the fields of a RecordFunction are, in bytes from its beginning.
struct Layout {
  uint32_t thread = 0;          // uint64: torch's number of the thread it began on
  uint32_t scope = 0;           // uint8
  uint32_t sequence = 0;        // int64; -1: none
  uint32_t forward_thread = 0;  // uint64, of nodes of backward: of the thread that made the node

  [[nodiscard]] bool is_known() const { return sequence != 0; }
};

template <typename T>
inline T field(const RecordFunction& call, uint32_t offset) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(&call) + offset, sizeof value);
  return value;
}

}  // namespace cuptiprof::torch
