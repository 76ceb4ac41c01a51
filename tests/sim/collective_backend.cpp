// What ProcessGroupNCCL does around each collective, with torch's own headers (c10d/ProcessGroupNCCL.cpp).
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

extern "C" void collective(const char* name, const char* group, const char* description, int64_t in_elements,
                           int64_t out_elements, int type, int rank, int first_rank, int rank_stride,
                           int group_size, int64_t sequence, bool is_async, void (*launch)()) {
  std::vector<at::Tensor> tensors;
  RECORD_PARAM_COMMS_DATA_WITH_ASYNC_OP(
      std::make_tuple(sequence, false), std::make_tuple(std::string(group), std::string(description)),
      tensors, tensors, rank, name, in_elements, out_elements, static_cast<at::ScalarType>(type),
      std::vector<int64_t>(), std::vector<int64_t>(), first_rank, rank_stride, group_size, is_async)
  launch();
}

namespace {
struct Other : c10::DebugInfoBase {
  Other() { std::fill(std::begin(of_its_own), std::end(of_its_own), 1); }  // read as texts: crashes
  int64_t of_its_own[40];
};
}  // namespace

// A backend that says something else in that place.
extern "C" void other_collective(void (*launch)()) {
  c10::DebugInfoGuard said(c10::DebugInfoKind::PARAM_COMMS_INFO, std::make_shared<Other>());
  RECORD_FUNCTION(at::kParamCommsCallName, std::vector<c10::IValue>());
  launch();
}
