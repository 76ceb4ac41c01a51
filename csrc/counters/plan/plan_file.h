// One cached plan as bytes in a file.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "counters/plan/plan_cache.h"

namespace cuptiprof {

// Name of the file of a key inside the cache folder.
std::string plan_file_name(std::string_view key);

std::string encode_plan(std::string_view key, const std::vector<PassGroup>& groups);
// nullopt: damaged, or the plan of another key.
std::optional<std::vector<PassGroup>> decode_plan(std::string_view bytes, std::string_view key);

// nullopt: no such file, or one that somebody else owns or could have written.
std::optional<std::string> read_own_file(const std::string& path);
// Whole or not at all; false: it could not be written.
bool write_atomically(const std::string& folder, const std::string& name, std::string_view bytes);
// Removes the oldest plans until those left take at most `bytes`.
void trim_folder(const std::string& folder, uint64_t bytes);

// FNV-1a: against damage and for names, not against attacks.
uint64_t fnv1a(std::string_view bytes, uint64_t seed = 0xcbf29ce484222325ull);

}  // namespace cuptiprof
