// Kernel names that records point at: the library's own copies.
#pragma once

namespace sim {

// The copy of this text, for as long as its module is loaded; null: "". Any thread.
const char* intern(const char* text);

// A module was unloaded: its names are gone and their memory serves the next new names, so that a pointer
// kept from an earlier record may now lead to another text.
void unload_names();

}  // namespace sim
