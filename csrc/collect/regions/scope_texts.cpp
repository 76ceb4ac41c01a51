#include "collect/regions/scope_texts.h"

#include "collect/regions/region_paths.h"
#include "collect/regions/scope_labels.h"
#include "threads/scope_trie.h"

namespace cuptiprof {

ScopeTexts::Columns ScopeTexts::lost(Store& store) const {
  const uint32_t text = store.lost_text();
  const bool either = x_any_nvtx || x_any_operator;
  return {x_any_nvtx || !either ? text : 0, x_any_operator || !either ? text : 0, false};
}

ScopeTexts::Columns ScopeTexts::of(Store& store, uint32_t node) {
  if (!g_scope_trie.holds(node)) [[unlikely]]
    return lost(store);
  const auto [found, is_new] = x_known.try_emplace(node);
  if (is_new) {
    Columns& columns = found->second;
    const std::vector<uint32_t> labels = g_scope_trie.labels(node);
    columns.nvtx = store.text(nvtx_ranges(labels));
    columns.operators = store.text(operator_path(labels));
    for (const uint32_t label : labels) columns.backward |= is_backward_scope(scope_label(label));
    x_any_nvtx |= columns.nvtx != 0;
    x_any_operator |= columns.operators != 0;
  }
  return found->second;
}

}  // namespace cuptiprof
