// Thread and process IDs as records carry them.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/machine/machine.h"

namespace sim {
namespace {

thread_local uint32_t t_given = 0;  // by cuptisim_set_thread
thread_local uint32_t t_system = 0;
std::atomic<uint32_t> g_process{0};

// Both calls are system calls; a child of fork must ask again.
const int g_ids_at_fork = pthread_atfork(nullptr, nullptr, [] {
  t_system = 0;
  g_process = 0;
});

}  // namespace

uint32_t this_thread_id(bool system) {
  if (t_given) return t_given;
  // What a profiler gets unless it asked for system IDs: a pthread handle cut to 32 bits.
  if (!system) return static_cast<uint32_t>(pthread_self());
  if (!t_system) t_system = static_cast<uint32_t>(syscall(SYS_gettid));
  return t_system;
}

void set_this_thread_id(uint32_t tid) { t_given = tid; }

uint32_t this_process_id() {
  uint32_t pid = g_process.load(std::memory_order_relaxed);
  if (!pid) g_process = pid = static_cast<uint32_t>(getpid());
  return pid;
}

}  // namespace sim
