// The paths of scopes as a tree: a node is its parent and a label. Decoder thread only.
//
// The text of a path is built when a row needs it. Its length and the number of nodes are limited: what lies
// beyond has the path of the region around it, which is counted.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/store.h"
#include "threads/scope_label.h"

namespace cuptiprof {

// The NVTX ranges among these labels, as ncu's expressions call them ("name", "domain@name"), joined by the
// separator
// ("/", of start/end ranges ","); that, "@" and "\" within a name have a "\" before them.
std::string nvtx_ranges(const std::vector<uint32_t>& labels, char separator = '/');

// The operators among them, joined by "/" as regions are.
std::string operator_path(const std::vector<uint32_t>& labels);
// An operator that belongs to backward: a node, or what the engine runs around one.
bool is_backward_scope(const ScopeLabel& label);

class RegionPaths {
 public:
  static constexpr uint32_t kMaxText = 8192;  // bytes of one path

  // `max_bytes` of memory for nodes.
  RegionPaths(size_t max_bytes, Losses& losses);

  // The node of a scope of this label inside `parent` (0: none).
  uint32_t child(uint32_t parent, uint32_t label);

  // Names from the outermost joined by '/'; "/" and "\" within a name are written "\/" and "\\".
  std::string text(uint32_t node) const;
  // Its ID among the strings of `store`.
  uint32_t string_id(Store& store, uint32_t node) {
    if (node == 0) return 0;
    const Node& n = x_nodes[node];
    return n.generation == x_generation ? n.string_id : intern(store, node);
  }
  // The same of its NVTX ranges alone (nvtx_ranges); 0: it has none.
  uint32_t nvtx_string_id(Store& store, uint32_t node) {
    if (!x_nodes[node].in_nvtx) return 0;
    if (x_nodes[node].generation != x_generation) intern(store, node);
    return x_nodes[node].nvtx_string_id;
  }
  // Labels from the outermost.
  std::vector<uint32_t> labels(uint32_t node) const;
  // A new store has its own strings.
  void forget_string_ids() { ++x_generation; }

 private:
  struct Node {
    uint32_t parent = 0;
    uint32_t label = 0;
    uint32_t text_bytes = 0;
    bool in_nvtx = false;  // it or one around it is an NVTX range
    uint32_t string_id = 0, nvtx_string_id = 0;
    uint64_t generation = 0;
  };
  static constexpr size_t kNodeBytes = 2 * sizeof(Node) + 64;  // with growth and its entry in x_children

  uint32_t intern(Store& store, uint32_t node);

  Losses& x_losses;
  size_t x_max_nodes;
  std::vector<Node> x_nodes;
  std::unordered_map<uint64_t, uint32_t> x_children;  // parent node << 32 | label -> node
  uint64_t x_generation = 1;
};

}  // namespace cuptiprof
