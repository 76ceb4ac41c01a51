#include "collect/regions/scope_texts.h"

#include "collect/regions/region_paths.h"
#include "threads/scope_trie.h"

namespace cuptiprof {

const ScopeTexts::Columns& ScopeTexts::of(Store& store, uint32_t node) {
  const auto [found, is_new] = x_known.try_emplace(node);
  if (is_new) found->second.nvtx = store.text(nvtx_ranges(g_scope_trie.labels(node)));
  return found->second;
}

}  // namespace cuptiprof
