// Where Python stands at a launch: its innermost line of the user's code, or its whole stack, and which of
// PyTorch's modules runs, as a node of g_frame_tree.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "threads/frame_tree.h"

namespace cuptiprof {

// Which files are not the user's: those of installed packages.
struct FrameOrigins {
  // What the names of files begin with; of several that fit the longest counts.
  std::vector<std::string> packages;
  std::vector<std::string> user;  // packages that are looked at like the user's own code
};

// Whether this Python's frames can be read at all: not where threads run without the GIL, nor where another
// Python runs than this was built for.
bool can_read_frames();

// Before current_frame() is called for the first time; with the GIL. Throws Error.
void prepare_frames();

// From now on g_frame_source says where Python stands, and nothing is known of earlier sessions. Call while
// no launch callback comes (before a session is attached), with the GIL. Throws Error.
void start_frames(FrameLevel level, bool modules, const FrameOrigins& origins);

// Node of the calling thread's stack or line, and of the module of PyTorch that runs; 0: it runs no Python
// code or no module, or there was no room.
uint32_t current_frame(FrameLevel level, bool modules) noexcept;

}  // namespace cuptiprof
