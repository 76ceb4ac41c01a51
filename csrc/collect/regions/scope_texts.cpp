#include "collect/regions/scope_texts.h"

#include "collect/regions/region_paths.h"
#include "collect/regions/scope_labels.h"
#include "threads/scope_trie.h"

namespace cuptiprof {

const ScopeTexts::Columns& ScopeTexts::of(Store& store, uint32_t node) {
  const auto [found, is_new] = x_known.try_emplace(node);
  if (is_new) {
    Columns& columns = found->second;
    const std::vector<uint32_t> labels = g_scope_trie.labels(node);
    columns.nvtx = store.text(nvtx_ranges(labels));
    columns.operators = store.text(operator_path(labels));
    for (const uint32_t label : labels) columns.backward |= is_backward_scope(scope_label(label));
  }
  return found->second;
}

}  // namespace cuptiprof
