// Correlation ID -> where the call was made. A window over the newest IDs: CUPTI hands them out in rising
// order, and a record follows its call by at most the work in flight, so an old page gives way to a new one.
// Decoder thread only.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace cuptiprof {

struct CallSite {
  uint32_t node;      // region path (RegionTracker node); 0: none
  uint32_t instance;  // regions.instance; 0: none
  uint32_t thread;    // system thread ID; 0: no such call was seen
};

class CorrelationMap {
 public:
  static constexpr uint32_t kPageShift = 10;
  static constexpr uint32_t kPageIds = 1u << kPageShift;
  static constexpr size_t kPageBytes = sizeof(CallSite) * kPageIds;

  explicit CorrelationMap(size_t max_bytes) {
    size_t pages = 16;
    while (pages * 2 * kPageBytes <= max_bytes) pages *= 2;
    x_pages.resize(pages);
  }

  void put(uint32_t correlation, const CallSite& site) {
    const uint32_t number = correlation >> kPageShift;
    Page& page = x_pages[number & (x_pages.size() - 1)];
    if (!page.sites) {
      page.sites = std::make_unique<CallSite[]>(kPageIds);
      page.number = number;
    } else if (page.number != number) {
      for (uint32_t i = 0; i < kPageIds; ++i) page.sites[i] = {};
      page.number = number;
    }
    page.sites[correlation & (kPageIds - 1)] = site;
  }

  // Null when the call was not seen or fell out of the window.
  const CallSite* find(uint32_t correlation) const {
    const uint32_t number = correlation >> kPageShift;
    const Page& page = x_pages[number & (x_pages.size() - 1)];
    if (!page.sites || page.number != number) return nullptr;
    const CallSite& site = page.sites[correlation & (kPageIds - 1)];
    return site.thread ? &site : nullptr;
  }

  size_t max_bytes() const { return x_pages.size() * kPageBytes; }

 private:
  struct Page {
    std::unique_ptr<CallSite[]> sites;
    uint32_t number = 0;
  };
  std::vector<Page> x_pages;
};

}  // namespace cuptiprof
