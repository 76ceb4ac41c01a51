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

  // Of a node that is too old kLostName, which is counted.
  Columns of(Store& store, uint32_t node);
  // A new store has its own strings, or g_scope_trie another generation.
  void forget_string_ids() { x_known.clear(); }

 private:
  Columns lost(Store& store) const;

  std::unordered_map<uint32_t, Columns> x_known;
  bool x_any_nvtx = false, x_any_operator = false;  // were there, ever
};

}  // namespace cuptiprof
