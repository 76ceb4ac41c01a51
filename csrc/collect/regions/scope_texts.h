// What scopes at launches are called in tables: their columns by node of the trie. Decoder thread
// only.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "store/store.h"

namespace cuptiprof {

class ScopeTexts {
 public:
  struct Columns {
    uint32_t nvtx = 0, operators = 0;  // IDs among the strings of the store
    bool backward = false;             // an operator of backward is among them
  };

  const Columns& of(Store& store, uint32_t node);
  // A new store has its own strings.
  void forget_string_ids() { x_known.clear(); }

 private:
  std::unordered_map<uint32_t, Columns> x_known;
};

}  // namespace cuptiprof
