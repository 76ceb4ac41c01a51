// What a text given to NVTX says: a name, and what torch appends to it (torch.autograd.profiler.emit_nvtx).
#pragma once
#include <string>
#include <string_view>

#include "nvtx/link.h"

namespace cuptiprof {

// "aten::mul, seq = 5, op_id = 12, sizes = [[2, 3], []], input_op_ids = [(3,0)]": each part but the name may
// be missing.
struct TorchText {
  std::string_view name;  // the whole text where it is nothing of torch's
  std::string_view seq, op_id, sizes, input_op_ids;
};
TorchText torch_text(std::string_view text) noexcept;

// Category, payload, colour and torch's parts as a JSON object; empty: there is nothing to say. `category`:
// its name.
std::string attributes_json(const nvtx::Said& said, const TorchText& torch, std::string_view category);

}  // namespace cuptiprof
