// Graph node -> where in the program it was captured, or added by hand. Decoder thread only.
//
// A table of as many nodes as its memory allows. Nodes that are gone stay in it, since records of their work
// may still be on their way, until there is no other room.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "threads/thread_slots.h"

namespace cuptiprof {

struct CaptureSite {
  uint32_t node = 0;      // region path (RegionTracker node); 0: none
  uint32_t instance = 0;  // regions.instance; 0: none
  LaunchOrigin origin;

  bool operator==(const CaptureSite&) const = default;
};

class CaptureSites {
 public:
  static constexpr uint32_t kUnknown = 0;  // a site: nobody knows where

  struct Node {
    uint64_t id = 0;      // cuptiGetGraphNodeId; 0: an empty place
    uint64_t origin = 0;  // ID of the node that this one is a copy of; 0: it was captured itself
    uint32_t site = kUnknown;
    uint32_t executable = 0;    // number of the executable graph it belongs to; 0: a template's
    uint32_t since = 0;         // launches after this correlation ID: origin and site are those of an update
    uint32_t gone_in : 31 = 0;  // period in which it was destroyed; 0: it is there
    uint32_t is_counted : 1 = 0;  // its work is part of what launches of that graph are counted to do
  };

  // `max_bytes`: a quarter of it for sites, of which nodes captured one after another share one, an eighth
  // for what updated nodes were before.
  explicit CaptureSites(size_t max_bytes);

  const Node* find(uint64_t id) const;
  Node* find(uint64_t id) { return const_cast<Node*>(static_cast<const CaptureSites&>(*this).find(id)); }
  // The node's place, a new one if it had none. Null: there is no room. Others may move.
  Node* put(uint64_t id);

  // kUnknown: there is no room.
  uint32_t site(const CaptureSite& site);
  // Every site: visit(site), which may change it.
  void each_site(auto&& visit) {
    for (CaptureSite& site : x_sites) visit(site);
  }
  const CaptureSite& at(uint32_t site) const { return x_sites[site]; }

  // Makes room: forgets nodes for which this says so, and sites that are nobody's then.
  template <typename Which>
  void forget(Which which) {
    std::vector<Node> kept;
    for (const Node& node : x_nodes)
      if (node.id != 0 && !which(node)) kept.push_back(node);
    refill(kept);
  }
  // The node is about to get another site, for launches after this correlation ID: those before had its own.
  // What was kept more than `periods` ago is forgotten.
  void keep_earlier(Node& node, uint32_t until, uint32_t period, uint32_t periods);
  // Of the launch with this correlation ID.
  uint32_t site_at(const Node& node, uint32_t correlation) const;

  template <typename Visit>
  void for_each(Visit visit) {
    for (Node& node : x_nodes)
      if (node.id != 0) visit(node);
  }

  size_t max_nodes() const { return x_max_nodes; }

 private:
  // Of eight places at most seven are taken.
  bool is_full() const { return x_taken * 8 >= x_nodes.size() * 7; }
  size_t place_of(uint64_t id) const;
  void resize(size_t places);
  void refill(std::vector<Node>& kept);

  struct Earlier {
    uint32_t until;  // correlation ID of the last launch
    uint32_t site;
    uint32_t period;
  };

  size_t x_max_places, x_max_nodes, x_max_sites, x_max_earlier;
  std::vector<Node> x_nodes;  // open addressing
  size_t x_taken = 0;
  std::vector<CaptureSite> x_sites{{}};
  std::unordered_map<uint64_t, std::vector<Earlier>> x_earlier;  // by node, oldest first
  size_t x_kept_earlier = 0;                                     // in all of them
};

}  // namespace cuptiprof
