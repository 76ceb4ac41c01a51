#include "sim/activity/clients.h"

#include <mutex>

#include "sim/activity/buffers.h"
#include "sim/activity/callbacks.h"
#include "sim/activity/wanted_records.h"
#include "sim/machine/machine.h"

namespace sim {
namespace {

constexpr uint32_t kFirstShared = 130300;
Client g_clients[kClients];
std::atomic<uint8_t> g_state{2};
std::mutex g_clients_mutex;  // guards who joins and leaves
thread_local int t_only = -1;

bool decide(uint8_t state) {
  uint8_t undecided = 2;
  return g_state.compare_exchange_strong(undecided, state) || undecided == state;
}

}  // namespace

Client& client(uint32_t index) { return g_clients[index]; }

bool sharing() { return g_state.load(std::memory_order_relaxed) == 1; }

uint8_t sharing_state() { return g_state; }

CUptiResult of_the_only_client() {
  return decide(0) ? CUPTI_SUCCESS : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

uint32_t shared_client(CUpti_SubscriberHandle handle) {
  for (uint32_t i = 1; i < kClients; ++i)
    if (handle == reinterpret_cast<CUpti_SubscriberHandle>(&g_clients[i]) && g_clients[i].alive) return i;
  return 0;
}

uint32_t subscribers() {
  uint32_t n = 0;
  for (const Client& c : g_clients) n += c.function.load() != nullptr || c.alive;
  return n;
}

CUptiResult join(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function, void* user) {
  if (Machine::get().version() < kFirstShared || !decide(1))
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  const std::lock_guard lock(g_clients_mutex);
  for (uint32_t i = 1; i < kClients; ++i) {
    Client& c = g_clients[i];
    if (c.alive) continue;
    reset_activity_settings(i);
    c.clock.reset(Machine::get().virtual_clock());
    c.user = user;
    c.function = function;
    c.alive = true;
    *handle = reinterpret_cast<CUpti_SubscriberHandle>(&c);
    return CUPTI_SUCCESS;
  }
  return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

void leave(uint32_t index) {
  const std::lock_guard lock(g_clients_mutex);
  disable_activity(index);
  disable_callbacks(index);
  g_clients[index].function = nullptr;
  g_clients[index].alive = false;
  forget_buffers(index);
}

void forget_clients() {
  for (uint32_t i = 1; i < kClients; ++i)
    if (g_clients[i].alive) leave(i);
  g_state = 2;
}

RecordClock& clock_of(uint32_t client) {
  return client == 0 ? Machine::get().clock() : g_clients[client].clock;
}

OnlyFor::OnlyFor(uint32_t client) { t_only = static_cast<int>(client); }
OnlyFor::~OnlyFor() { t_only = -1; }
int only_for() { return t_only; }

}  // namespace sim
