// The paths of scopes as a tree: a node is its parent and a label. Decoder thread only.
//
// The text of a path is built when a row needs it. Its length and the number of nodes are limited: what lies
// beyond has the path of the region around it, which is counted. Where names come without end, nodes age.
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

  // A node whose path is no longer known.
  static constexpr uint32_t kLost = 1;

  // `max_bytes` of memory for nodes.
  RegionPaths(size_t max_bytes, Losses& losses);

  // The node of a scope of this label inside `parent` (0: none).
  uint32_t child(uint32_t parent, uint32_t label);

  // Names from the outermost joined by '/'; "/" and "\" within a name are written "\/" and "\\".
  std::string text(uint32_t node) const;
  // There is no room, and there will be if nodes age: not where nearly all are open.
  bool wants_to_age() const {
    return x_nodes.size() >= x_max_nodes && (x_left < x_max_nodes / 8 * 7 || x_refused > x_max_nodes);
  }
  // Nodes go until at most `most` are left: those that nobody came to for longest, but none of `open` and
  // what is around them. Returns the new number of each, kLost of those that have gone. Whoever has numbers
  // must take the new ones.
  std::vector<uint32_t> age(const std::vector<uint32_t>& open, size_t most);
  size_t max_nodes() const { return x_max_nodes; }
  // Of all nodes.
  void each_label(auto&& visit) const {
    for (const Node& n : x_nodes)
      if (n.label != 0) visit(n.label);
  }
  // Its ID among the strings of `store`.
  uint32_t string_id(Store& store, uint32_t node) {
    if (node == 0) return 0;
    if (node == kLost) [[unlikely]]
      return store.lost_text();
    const Node& n = x_nodes[node];
    return n.generation == x_generation ? n.string_id : intern(store, node);
  }
  // The same of its NVTX ranges alone (nvtx_ranges); 0: it has none.
  uint32_t nvtx_string_id(Store& store, uint32_t node) {
    if (node == kLost) [[unlikely]]
      return x_any_nvtx ? store.lost_text() : 0;
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
    uint32_t came_in = 0;  // how often nodes had aged when somebody last came to it
    uint64_t generation = 0;
  };
  static constexpr size_t kNodeBytes = 2 * sizeof(Node) + 64;  // with growth and its entry in x_children

  uint32_t intern(Store& store, uint32_t node);

  Losses& x_losses;
  size_t x_max_nodes;
  size_t x_left = 0;        // nodes when they last aged
  size_t x_refused = 0;     // since then, for want of room
  uint32_t x_aged = 0;      // how often
  bool x_any_nvtx = false;  // there was a node in an NVTX range
  std::vector<Node> x_nodes;
  std::unordered_map<uint64_t, uint32_t> x_children;  // parent node << 32 | label -> node
  uint64_t x_generation = 1;
};

}  // namespace cuptiprof
