#include "counters/plan/plan_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace cuptiprof {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'C', 'P', 'P', 'L', 'A', 'N', '0', '1'};
constexpr size_t kHeader = sizeof kMagic + 2 * sizeof(uint64_t);  // magic, length of the rest, its checksum
constexpr size_t kLargestFile = 32u << 20;
constexpr const char* kSuffix = ".plan";

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_bytes(std::string& out, const void* data, size_t size) {
  append(out, static_cast<uint32_t>(size));
  out.append(static_cast<const char*>(data), size);
}

// Takes values off the front; after the first that is cut short, `ok` is false and everything is empty.
struct Reader {
  std::string_view left;
  bool ok = true;

  std::string_view take(size_t n) {
    if (!ok || n > left.size()) {
      ok = false;
      return {};
    }
    const std::string_view out = left.substr(0, n);
    left.remove_prefix(n);
    return out;
  }
  uint32_t number() {
    uint32_t value = 0;
    const std::string_view bytes = take(sizeof value);
    if (ok) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view bytes() { return take(number()); }
};

struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

uint64_t fnv1a(std::string_view bytes, uint64_t hash) {
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return hash;
}

std::string plan_file_name(std::string_view key) {
  char name[48];
  std::snprintf(name, sizeof name, "%016llx%016llx%s", static_cast<unsigned long long>(fnv1a(key)),
                static_cast<unsigned long long>(fnv1a(key, 0x9e3779b97f4a7c15ull)), kSuffix);
  return name;
}

std::string encode_plan(std::string_view key, const std::vector<PassGroup>& groups) {
  std::string body;
  append_bytes(body, key.data(), key.size());
  append(body, static_cast<uint32_t>(groups.size()));
  for (const PassGroup& g : groups) {
    append(body, g.passes);
    append(body, static_cast<uint32_t>(g.metrics.size()));
    for (const std::string& m : g.metrics) append_bytes(body, m.data(), m.size());
    append_bytes(body, g.image.data(), g.image.size());
  }
  std::string out(kMagic, sizeof kMagic);
  append(out, static_cast<uint64_t>(body.size()));
  append(out, fnv1a(body));
  return out + body;
}

std::optional<std::vector<PassGroup>> decode_plan(std::string_view bytes, std::string_view key) {
  if (bytes.size() < kHeader || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return std::nullopt;
  uint64_t header[2];
  std::memcpy(header, bytes.data() + sizeof kMagic, sizeof header);
  Reader reader{bytes.substr(kHeader)};
  if (header[0] != reader.left.size() || header[1] != fnv1a(reader.left)) return std::nullopt;
  if (reader.bytes() != key) return std::nullopt;
  std::vector<PassGroup> out;
  // Every count is followed by at least as many bytes, so a wrong one runs out of file, not of memory.
  for (uint32_t groups = reader.number(); reader.ok && groups > 0; --groups) {
    PassGroup g;
    g.passes = reader.number();
    for (uint32_t metrics = reader.number(); reader.ok && metrics > 0; --metrics)
      g.metrics.emplace_back(reader.bytes());
    const std::string_view image = reader.bytes();
    g.image.assign(image.begin(), image.end());
    if (g.passes == 0 || g.metrics.empty() || g.image.empty()) return std::nullopt;
    out.push_back(std::move(g));
  }
  if (!reader.ok || !reader.left.empty()) return std::nullopt;
  return out;
}

std::optional<std::string> read_own_file(const std::string& path) {
  // What is read here is handed to the driver: it must be ours. NONBLOCK: a pipe of that name must not hang.
  const File file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  struct stat st = {};
  if (file.fd < 0 || fstat(file.fd, &st) != 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) return std::nullopt;
  if (st.st_size < 0 || static_cast<size_t>(st.st_size) > kLargestFile) return std::nullopt;
  std::string out(static_cast<size_t>(st.st_size), '\0');
  size_t got = 0;
  while (got < out.size()) {
    const ssize_t n = read(file.fd, out.data() + got, out.size() - got);
    if (n <= 0) return std::nullopt;
    got += static_cast<size_t>(n);
  }
  return out;
}

bool write_atomically(const std::string& folder, const std::string& name, std::string_view bytes) {
  if (bytes.size() > kLargestFile) return false;
  std::error_code failed;
  if (const fs::path parent = fs::path(folder).parent_path(); !parent.empty())
    fs::create_directories(parent, failed);
  mkdir(folder.c_str(), S_IRWXU);  // fails when it exists; whatever else is wrong shows below
  static std::atomic<uint32_t> counter{0};
  const std::string target = (fs::path(folder) / name).string();
  const std::string temporary = target + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
  bool written = false;
  {
    const File file{
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR)};
    if (file.fd < 0) return false;
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = write(file.fd, bytes.data() + done, bytes.size() - done);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    written = done == bytes.size();
  }
  if (written && rename(temporary.c_str(), target.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

void trim_folder(const std::string& folder, uint64_t bytes) {
  struct Entry {
    fs::file_time_type time;
    fs::path path;
    uint64_t size;
  };
  std::error_code failed;
  std::vector<Entry> entries;
  uint64_t total = 0;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    // Ours: plans, and what a killed process left half written.
    if (it->path().filename().string().find(kSuffix) == std::string::npos) continue;
    std::error_code gone;
    const uint64_t size = it->file_size(gone);
    const auto time = it->last_write_time(gone);
    if (gone) continue;
    entries.push_back({time, it->path(), size});
    total += size;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time < b.time : a.path < b.path;
  });
  for (const Entry& e : entries) {
    if (total <= bytes) break;
    fs::remove(e.path, failed);
    total -= e.size;
  }
}

}  // namespace cuptiprof
