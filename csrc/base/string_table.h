// Text -> dense u32. Id 0 is always the empty string. One writer at a time; not locked (see who owns it).
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace cuptiprof {

class StringTable {
 public:
  StringTable();
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;

  static constexpr size_t kNoLimit = ~size_t{0};
  static constexpr uint32_t kNone = ~uint32_t{0};

  // The id of `text`, new if it was not known. kNone: it is new, and the table would hold more than
  // `max_bytes` with it. Views returned by at() stay valid as long as the table lives.
  uint32_t intern(std::string_view text, size_t max_bytes = kNoLimit);

  // The same texts under the same ids; `this` is empty.
  void copy_from(const StringTable& other) {
    for (uint32_t id = size(); id < other.size(); ++id) intern(other.at(id));
  }

  // Always NUL-terminated.
  std::string_view at(uint32_t id) const { return x_strings[id]; }
  const char* c_str(uint32_t id) const { return x_strings[id].data(); }
  uint32_t size() const { return static_cast<uint32_t>(x_strings.size()); }
  size_t bytes() const { return x_bytes; }  // memory held
  // Memory held when there are so many more of the length that texts have on average.
  size_t bytes_with(size_t more) const;

 private:
  void grow();
  const char* store(std::string_view text);

  std::vector<std::string_view> x_strings;
  std::vector<uint32_t> x_hashes;  // of x_strings, so that growing does not read every string again
  std::vector<uint32_t> x_slots;   // open addressing: id + 1, 0 = free
  std::vector<std::unique_ptr<char[]>> x_blocks;
  size_t x_block_bytes = 0;  // of x_blocks
  size_t x_block_left = 0;
  char* x_block_at = nullptr;
  size_t x_bytes = 0;
};

}  // namespace cuptiprof
