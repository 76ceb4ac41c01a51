// Between the library that NVTX loads (libcuptiprof_nvtx.so) and the collector (_core): two tables of C
// functions, whichever of the two is loaded first.
//
// The library keeps what NVTX is told once (domains, registered strings, names) from its first call on, and
// counts the levels of push/pop; what happens meanwhile it tells the collector, while that listens.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuptiprof::nvtx {

inline constexpr uint32_t kLinkVersion = 1;  // of everything in this file

enum class PayloadKind : uint32_t { kNone, kUnsigned, kSigned, kFloating };

// What a push, a start or a mark said. Views, valid during the call.
struct Said {
  const char* domain;  // "": the default one
  const char* text;    // as the program gave it: any bytes; cut at kMaxText
  size_t text_bytes;
  uint64_t*
      label;  // of a registered string: a word for the listener, shared by all threads; null: another text
  uint32_t domain_number;
  uint32_t category;  // 0: none
  uint32_t color;     // ARGB
  bool has_color;
  PayloadKind payload_kind;
  union {
    uint64_t u;
    int64_t i;
    double f;
  } payload;
};
inline constexpr size_t kMaxText = 4096;

enum class Named : uint32_t { kThread = 1, kDevice };

// The collector. It lives as long as the process, so that a handler may be inside whatever is switched off
// meanwhile. Called by any thread, without the GIL; nothing throws.
struct Listener {
  uint32_t version;
  // Which of the tasks that share this thread runs; 0: its outermost code.
  uint64_t (*task)();
  // The ID that pop() wants; 0: nothing was opened.
  uint64_t (*push)(const Said* said, uint64_t task);
  void (*pop)(uint64_t id, uint64_t task);
  void (*start)(const Said* said, uint64_t range);
  void (*end)(uint64_t range);
  void (*mark)(const Said* said);
};

// The library; what cuptiprof_nvtx_link() returns.
struct Link {
  uint32_t version;
  // Null: nobody listens. Does not wait for handlers that are on their way.
  void (*listen)(const Listener* listener);
  // How many copies of NVTX were given our handlers; the i-th by an address inside of it.
  size_t (*copies)();
  const void* (*copy)(size_t i);
  // Writes at most `room` bytes; returns how many. 0: the category has no name.
  size_t (*category_name)(uint32_t domain_number, uint32_t category, char* out, size_t room);
  // Names of threads (by system ID) and devices (by ordinal).
  void (*names)(void (*visit)(void* user, Named what, uint64_t object, const char* name), void* user);
  // Domains, strings and names for which there was no room.
  uint64_t (*lost)();
};
using GetLink = const Link* (*)();
inline constexpr const char* kGetLink = "cuptiprof_nvtx_link";

}  // namespace cuptiprof::nvtx
