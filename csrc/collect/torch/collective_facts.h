// What a backend of torch.distributed says of the collective that it begins: a torch::ParamCommsDebugInfo,
// which NCCL's and others' put into c10's thread-local debug information, and an operator
// "record_param_comms" inside of it. DistributedDataParallel's all-reduces have no other sign of their group.
//
// No torch is linked: where the fields are is the compiler's answer for a struct that is declared as torch's,
// and is believed only after one that torch itself made has been read (find_collective_facts).
#pragma once
#include <cstdint>
#include <cstring>
#include <string>

namespace cuptiprof::torch {

struct CollectiveFacts {
  std::string name, group, group_description;
  std::string type;                           // of the elements, as c10 calls it
  int64_t in_elements = 0, out_elements = 0;  // this rank gives, and gets
  int64_t sequence = -1;                      // in the group; -1: this torch does not say
  int32_t rank = -1;                          // the other one, or the root; else this one
  int32_t first_rank = -1, rank_stride = 0;   // of the group's ranks, where they are evenly spaced
  int32_t group_size = 0;
  bool is_async = false;
};

// Once, where the program's torch was found; `library`: its libtorch_cpu.so. False: it says nothing, or not
// as is known here.
bool find_collective_facts(void* library) noexcept;

// Of the collective that the calling thread is about to begin. False: none is said.
bool collective_facts(CollectiveFacts& facts);

// Whether an operator of this name is one's sign.
inline bool is_collective(const char* name) noexcept {
  return name[0] == 'r' && std::strcmp(name, "record_param_comms") == 0;
}

}  // namespace cuptiprof::torch
