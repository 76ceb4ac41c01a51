#include "collect/regions/region_paths.h"

#include <algorithm>
#include <string_view>

#include "collect/regions/regions.h"

namespace cuptiprof {
namespace {

std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '/' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

RegionPaths::RegionPaths(size_t max_bytes, Losses& losses)
    : x_losses(losses), x_max_nodes(std::max<size_t>(max_bytes / kNodeBytes, 1024)) {
  x_nodes.push_back({});
}

uint32_t RegionPaths::child(uint32_t parent, uint32_t name) {
  const uint64_t key = uint64_t{parent} << 32 | name;
  if (const auto found = x_children.find(key); found != x_children.end()) return found->second;
  const size_t own = escaped(region_name(name)).size();
  size_t bytes = own + (parent ? x_nodes[parent].text_bytes + 1 : 0);
  // An outermost region has a path of its own however long its name is, as long as there is room for a node.
  if (x_nodes.size() >= x_max_nodes || (parent && bytes > kMaxText)) {
    count(x_losses.texts_lost);
    if (parent) return parent;
    name = region_name_id(kOtherRegions);
    if (const auto found = x_children.find(name); found != x_children.end()) return found->second;
  }
  const auto node = static_cast<uint32_t>(x_nodes.size());
  if (!parent) bytes = escaped(region_name(name)).size();
  x_nodes.push_back({parent, name, static_cast<uint32_t>(bytes), 0, 0});
  x_children.emplace(uint64_t{parent} << 32 | name, node);
  return node;
}

std::string RegionPaths::text(uint32_t node) const {
  std::string out(x_nodes[node].text_bytes, '/');
  for (size_t end = out.size(); node != 0; node = x_nodes[node].parent) {
    const std::string name = escaped(region_name(x_nodes[node].name));
    out.replace(end - name.size(), name.size(), name);
    end -= name.size() + (x_nodes[node].parent ? 1 : 0);
  }
  return out;
}

uint32_t RegionPaths::intern(Store& store, uint32_t node) {
  Node& n = x_nodes[node];
  n.string_id = store.text(text(node));
  n.generation = x_generation;
  return n.string_id;
}

}  // namespace cuptiprof
