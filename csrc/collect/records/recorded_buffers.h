// Activity buffers that were written to a file: records hold pointers to strings, which a file cannot.
//
// In a recorded buffer each such field holds 0 for null or 1 + the index of a string. Only kinds of records
// whose pointers are known here can be recorded or read back, so that no address out of a file is ever
// followed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/store.h"

namespace cuptiprof {

struct Api;

// Takes the strings out of the first `valid` bytes, which the library just completed. Throws Error for a kind
// that cannot be recorded, and when the library cannot read the buffer.
void detach_strings(const Api& api, uint8_t* data, size_t valid, std::vector<std::string>& strings);

// Decodes recorded buffers of the library's own layout as the collector would, without regions. Throws Error
// for what cannot have been recorded.
std::unique_ptr<Store> decode_recorded(const Api& api, const std::vector<std::string>& buffers,
                                       const std::vector<std::string>& strings, Losses& losses);

}  // namespace cuptiprof
