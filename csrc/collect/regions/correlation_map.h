// Correlation ID -> where the call was made. A window over the newest IDs: CUPTI hands them out in rising
// order, and a record follows its call by at most the work in flight, so an old page gives way to a new one.
// Decoder thread only.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "collect/regions/operator_tracker.h"
#include "threads/thread_slots.h"

namespace cuptiprof {

struct CallSite {
  uint32_t node = 0;          // region path (RegionTracker node); 0: none
  uint32_t instance = 0;      // regions.instance; 0: none
  uint32_t thread = 0;        // system thread ID; 0: no such call was seen
  uint32_t step : 31 = 0;     // number of the training step + 1; 0: none was marked
  uint32_t backward : 1 = 0;  // on a thread of torch's engine, or inside a call of it
};

// What a CorrelationMap has room for beside.
struct BesideCalls {
  bool origins = false, start_end = false, operators = false;
};

class CorrelationMap {
 public:
  static constexpr uint32_t kPageShift = 10;
  static constexpr uint32_t kPageIds = 1u << kPageShift;
  static constexpr size_t kPageBytes = sizeof(CallSite) * kPageIds;

  explicit CorrelationMap(size_t max_bytes, BesideCalls beside = {}) : x_beside(beside) {
    const size_t page = kPageBytes + (beside.origins ? sizeof(LaunchOrigin) * kPageIds : 0) +
                        (beside.start_end ? sizeof(uint32_t) * kPageIds : 0) +
                        (beside.operators ? sizeof(OperatorSite) * kPageIds : 0);
    size_t pages = 16;
    while (pages * 2 * page <= max_bytes) pages *= 2;
    x_pages.resize(pages);
  }

  void put(uint32_t correlation, const CallSite& site, const LaunchOrigin& origin = {},
           uint32_t start_end = 0, const OperatorSite& in = {}) {
    Page& page = page_for(correlation);
    page.sites[correlation & kIn] = site;
    if (x_beside.origins) page.origins[correlation & kIn] = origin;
    if (x_beside.start_end) page.start_end[correlation & kIn] = start_end;
    if (x_beside.operators) page.operators[correlation & kIn] = in;
  }
  // Every call in the window: visit(site, start_end), which may change them; start_end: null without them.
  void each_call(auto&& visit) {
    for (Page& page : x_pages)
      for (uint32_t i = 0; page.sites && i < kPageIds; ++i)
        if (page.sites[i].thread != 0) visit(page.sites[i], page.start_end ? &page.start_end[i] : nullptr);
  }
  bool with_origins() const { return x_beside.origins; }
  bool with_start_end() const { return x_beside.start_end; }
  bool with_operators() const { return x_beside.operators; }

  // Null when the call was not seen or fell out of the window.
  const CallSite* find(uint32_t correlation) const {
    const uint32_t number = correlation >> kPageShift;
    const Page& page = x_pages[number & (x_pages.size() - 1)];
    if (!page.sites || page.number != number) return nullptr;
    const CallSite& site = page.sites[correlation & kIn];
    return site.thread ? &site : nullptr;
  }
  // Of a site that was found.
  LaunchOrigin origin(uint32_t correlation) const {
    const Page& page = x_pages[correlation >> kPageShift & (x_pages.size() - 1)];
    return page.origins ? page.origins[correlation & kIn] : LaunchOrigin{};
  }
  // The same: which NVTX start/end ranges were open (NvtxMarkers::open_set).
  uint32_t start_end(uint32_t correlation) const {
    const Page& page = x_pages[correlation >> kPageShift & (x_pages.size() - 1)];
    return page.start_end ? page.start_end[correlation & kIn] : 0;
  }
  // The same: its operator, of the level "full".
  OperatorSite operator_at(uint32_t correlation) const {
    const Page& page = x_pages[correlation >> kPageShift & (x_pages.size() - 1)];
    return page.operators ? page.operators[correlation & kIn] : OperatorSite{};
  }

 private:
  static constexpr uint32_t kIn = kPageIds - 1;
  struct Page {
    std::unique_ptr<CallSite[]> sites;
    std::unique_ptr<LaunchOrigin[]> origins;  // null without them
    std::unique_ptr<uint32_t[]> start_end;    // the same
    std::unique_ptr<OperatorSite[]> operators;
    uint32_t number = 0;
  };

  Page& page_for(uint32_t correlation) {
    const uint32_t number = correlation >> kPageShift;
    Page& page = x_pages[number & (x_pages.size() - 1)];
    if (!page.sites) {
      page.sites = std::make_unique<CallSite[]>(kPageIds);
      if (x_beside.origins) page.origins = std::make_unique<LaunchOrigin[]>(kPageIds);
      if (x_beside.start_end) page.start_end = std::make_unique<uint32_t[]>(kPageIds);
      if (x_beside.operators) page.operators = std::make_unique<OperatorSite[]>(kPageIds);
      page.number = number;
    } else if (page.number != number) {
      std::fill_n(page.sites.get(), kPageIds, CallSite{});
      page.number = number;
    }
    return page;
  }

  BesideCalls x_beside;
  std::vector<Page> x_pages;
};

}  // namespace cuptiprof
