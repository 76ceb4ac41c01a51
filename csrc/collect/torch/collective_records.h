// Collectives as their backend records them, those that C++ begins among them: from the operator observer to
// the session that asked for them.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>

#include "collect/torch/collective_facts.h"
#include "collect/torch/record_function.h"

namespace cuptiprof::torch {

struct CollectiveRecord {
  int64_t start = 0, end = 0;  // ns on the run clock
  uint32_t thread = 0;         // of the system
  CollectiveFacts facts;
};

// From here on, the last `room` of them until they are taken; 0: no more. What was there is forgotten where
// some are to be kept.
void keep_collectives(size_t room);

// Those that ended since the last time, in the order of their ends, and for how many there was no room.
struct TakenCollectives {
  std::deque<CollectiveRecord> records;
  uint64_t lost = 0;
};
TakenCollectives take_collectives();

// On the thread of the collective, at the beginning of its operator and at its end.
void collective_begins(const RecordFunction& call, uint32_t thread) noexcept;
void collective_ends(const RecordFunction& call) noexcept;
// How many have begun and not ended: the end of any operator looks here first.
inline std::atomic<uint32_t> g_open_collectives{0};

}  // namespace cuptiprof::torch
