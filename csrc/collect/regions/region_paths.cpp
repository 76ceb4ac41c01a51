#include "collect/regions/region_paths.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "collect/regions/scope_labels.h"

namespace cuptiprof {
namespace {

std::string escaped(std::string_view name, std::string_view special) {
  std::string out;
  for (const char c : name) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string path_component(const ScopeLabel& label) { return escaped(label.name, "/\\"); }

}  // namespace

std::string nvtx_ranges(const std::vector<uint32_t>& labels, char separator) {
  const char special[] = {separator, '@', '\\'};
  const std::string_view kSpecial(special, sizeof special);
  std::string out;
  bool is_next = false;
  for (const uint32_t id : labels) {
    const ScopeLabel label = scope_label(id);
    if (label.source != ScopeSource::kNvtx) continue;
    if (is_next) out += separator;
    is_next = true;
    if (!label.domain.empty()) out += escaped(label.domain, kSpecial) + '@';
    out += escaped(label.name, kSpecial);
  }
  return out;
}

std::string operator_path(const std::vector<uint32_t>& labels) {
  std::string out;
  for (const uint32_t id : labels) {
    const ScopeLabel label = scope_label(id);
    if (label.source != ScopeSource::kOperator) continue;
    if (!out.empty()) out += '/';
    out += path_component(label);
  }
  return out;
}

bool is_backward_scope(const ScopeLabel& label) {
  // The domain of an operator is its scope (at::RecordScope).
  return label.source == ScopeSource::kOperator &&
         (label.domain == std::string_view("\1", 1) || label.name.starts_with("autograd::engine::"));
}

RegionPaths::RegionPaths(size_t max_bytes, Losses& losses)
    : x_losses(losses), x_max_nodes(std::max<size_t>(max_bytes / kNodeBytes, 1024)) {
  x_nodes.resize(kLost + 1);
  x_nodes[kLost].text_bytes = kLostName.size();
}

uint32_t RegionPaths::child(uint32_t parent, uint32_t label) {
  const uint64_t key = uint64_t{parent} << 32 | label;
  if (const auto found = x_children.find(key); found != x_children.end()) {
    x_nodes[found->second].came_in = x_aged;
    return found->second;
  }
  const ScopeLabel named = scope_label(label);
  Node n;
  n.parent = parent;
  n.label = label;
  n.in_nvtx = x_nodes[parent].in_nvtx || named.source == ScopeSource::kNvtx;
  x_any_nvtx |= n.in_nvtx;
  n.came_in = x_aged;
  n.text_bytes = static_cast<uint32_t>(path_component(named).size());
  const size_t bytes = size_t{n.text_bytes} + (parent ? x_nodes[parent].text_bytes + 1 : 0);
  // An outermost one has a path of its own however long its name is, as long as there is room for a node.
  if (x_nodes.size() >= x_max_nodes || (parent && bytes > kMaxText)) {
    count(x_losses.texts_lost);
    ++x_refused;
    if (parent) return parent;
    n.label = scope_label_id(named.source, {}, kOtherScopes);
    n.text_bytes = kOtherScopes.size();
    if (const auto found = x_children.find(n.label); found != x_children.end()) return found->second;
  } else {
    n.text_bytes = static_cast<uint32_t>(bytes);
  }
  const auto node = static_cast<uint32_t>(x_nodes.size());
  x_nodes.push_back(n);
  x_children.emplace(uint64_t{parent} << 32 | n.label, node);
  return node;
}

std::vector<uint32_t> RegionPaths::age(const std::vector<uint32_t>& open, size_t most) {
  std::vector<uint8_t> stays(x_nodes.size(), 0);
  size_t count = kLost + 1;
  stays[0] = stays[kLost] = 1;
  const auto keep = [&](uint32_t node) {
    for (; !stays[node]; node = x_nodes[node].parent) stays[node] = 1, ++count;
  };
  for (const uint32_t node : open) keep(node);
  std::vector<uint32_t> latest(x_nodes.size());
  std::iota(latest.begin(), latest.end(), 0);
  std::sort(latest.begin(), latest.end(), [this](uint32_t a, uint32_t b) {
    return std::pair(x_nodes[a].came_in, a) > std::pair(x_nodes[b].came_in, b);
  });
  for (const uint32_t node : latest) {
    if (count >= most) break;
    keep(node);
  }
  std::vector<uint32_t> now(x_nodes.size(), kLost);
  std::vector<Node> nodes;
  nodes.reserve(count);
  x_children.clear();
  for (uint32_t node = 0; node < x_nodes.size(); ++node) {
    if (!stays[node]) continue;
    now[node] = static_cast<uint32_t>(nodes.size());
    Node& n = nodes.emplace_back(x_nodes[node]);
    n.parent = now[n.parent];  // made before it, so it has its number
    if (node > kLost) x_children.emplace(uint64_t{n.parent} << 32 | n.label, now[node]);
  }
  x_nodes = std::move(nodes);
  ++x_aged;
  x_left = x_nodes.size();
  x_refused = 0;
  return now;
}

std::string RegionPaths::text(uint32_t node) const {
  std::string out(x_nodes[node].text_bytes, '/');
  for (size_t end = out.size(); node != 0; node = x_nodes[node].parent) {
    const std::string name =
        node == kLost ? std::string(kLostName) : path_component(scope_label(x_nodes[node].label));
    out.replace(end - name.size(), name.size(), name);
    end -= name.size() + (x_nodes[node].parent ? 1 : 0);
  }
  return out;
}

std::vector<uint32_t> RegionPaths::labels(uint32_t node) const {
  std::vector<uint32_t> out;
  for (; node != 0; node = x_nodes[node].parent) out.push_back(x_nodes[node].label);
  std::reverse(out.begin(), out.end());
  return out;
}

uint32_t RegionPaths::intern(Store& store, uint32_t node) {
  Node& n = x_nodes[node];
  n.string_id = store.text(text(node));
  n.nvtx_string_id = n.in_nvtx ? store.text(nvtx_ranges(labels(node))) : 0;
  n.generation = x_generation;
  return n.string_id;
}

}  // namespace cuptiprof
