#include "collect/graphs/capture_sites.h"

#include <algorithm>
#include <utility>

namespace cuptiprof {
namespace {

constexpr size_t kFirstPlaces = 1024;

}  // namespace

CaptureSites::CaptureSites(size_t max_bytes)
    : x_max_places(std::max(max_bytes / 8 * 5 / sizeof(Node), kFirstPlaces)),
      x_max_nodes(x_max_places / 8 * 7),
      x_max_sites(std::max(max_bytes / 4 / sizeof(CaptureSite), kFirstPlaces)),
      x_max_earlier(std::max(max_bytes / 8 / sizeof(Earlier), kFirstPlaces)) {}

// IDs are dense or share their upper half; a product spreads them, and its upper bits are the place.
size_t CaptureSites::place_of(uint64_t id) const {
  const uint64_t hash = (id ^ id >> 32) * 0x9E3779B97F4A7C15ull;
  size_t at = static_cast<size_t>(static_cast<unsigned __int128>(hash) * x_nodes.size() >> 64);
  while (x_nodes[at].id != 0 && x_nodes[at].id != id)
    if (++at == x_nodes.size()) at = 0;
  return at;
}

const CaptureSites::Node* CaptureSites::find(uint64_t id) const {
  if (x_taken == 0 || id == 0) return nullptr;
  const Node& node = x_nodes[place_of(id)];
  return node.id != 0 ? &node : nullptr;
}

CaptureSites::Node* CaptureSites::put(uint64_t id) {
  if (id == 0) return nullptr;
  if (Node* known = find(id)) return known;
  if (is_full()) {
    if (x_nodes.size() >= x_max_places) return nullptr;
    resize(std::clamp(2 * x_nodes.size(), kFirstPlaces, x_max_places));
  }
  Node& node = x_nodes[place_of(id)];
  node.id = id;
  ++x_taken;
  return &node;
}

uint32_t CaptureSites::site(const CaptureSite& site) {
  if (x_sites.size() > 1 && x_sites.back() == site) return static_cast<uint32_t>(x_sites.size() - 1);
  if (x_sites.size() >= x_max_sites) return kUnknown;
  x_sites.push_back(site);
  return static_cast<uint32_t>(x_sites.size() - 1);
}

void CaptureSites::keep_earlier(Node& node, uint32_t until, uint32_t period, uint32_t periods) {
  std::vector<Earlier>& kept = x_earlier[node.id];
  const size_t before = kept.size();
  std::erase_if(kept, [&](const Earlier& e) { return period - e.period > periods; });
  if (x_kept_earlier + kept.size() - before < x_max_earlier) {
    kept.push_back({until, node.site, period});
  } else {
    kept.assign(1, {until, kUnknown, period});
  }
  x_kept_earlier += kept.size() - before;
  node.since = until;
}

// IDs rise, and begin anew after 2^32.
uint32_t CaptureSites::site_at(const Node& node, uint32_t correlation) const {
  const auto is_after = [correlation](uint32_t id) { return static_cast<int32_t>(correlation - id) > 0; };
  if (node.since == 0 || is_after(node.since)) return node.site;
  const auto found = x_earlier.find(node.id);
  if (found == x_earlier.end()) return kUnknown;
  for (const Earlier& e : found->second)
    if (!is_after(e.until)) return e.site;
  return kUnknown;
}

void CaptureSites::resize(size_t places) {
  const std::vector<Node> before = std::exchange(x_nodes, std::vector<Node>(places));
  for (const Node& node : before)
    if (node.id != 0) x_nodes[place_of(node.id)] = node;
}

void CaptureSites::refill(std::vector<Node>& kept) {
  const std::vector<CaptureSite> before = std::exchange(x_sites, {{}});
  std::vector<uint32_t> moved(before.size(), kUnknown);
  std::fill(x_nodes.begin(), x_nodes.end(), Node{});
  x_taken = kept.size();
  const auto move = [&](uint32_t& site) {
    if (site == kUnknown) return;
    uint32_t& to = moved[site];
    if (to == kUnknown) {
      x_sites.push_back(before[site]);
      to = static_cast<uint32_t>(x_sites.size() - 1);
    }
    site = to;
  };
  for (Node& node : kept) {
    move(node.site);
    x_nodes[place_of(node.id)] = node;
  }
  x_kept_earlier = 0;
  std::erase_if(x_earlier, [this](const auto& of) { return !find(of.first); });
  for (auto& [id, earlier] : x_earlier) {
    for (Earlier& e : earlier) move(e.site);
    x_kept_earlier += earlier.size();
  }
}

}  // namespace cuptiprof
