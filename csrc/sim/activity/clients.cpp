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
std::atomic<SharingState> g_state{SharingState::kUndecided};
std::mutex g_clients_mutex;  // guards who joins and leaves
thread_local std::optional<uint32_t> t_only;

// False: it is decided otherwise.
bool decide(SharingState state) {
  SharingState seen = SharingState::kUndecided;
  return g_state.compare_exchange_strong(seen, state) || seen == state;
}

}  // namespace

Client& client(uint32_t index) { return g_clients[index]; }

bool sharing() { return g_state.load(std::memory_order_relaxed) == SharingState::kSeveral; }

SharingState sharing_state() { return g_state; }

CUptiResult of_the_only_client() {
  return decide(SharingState::kAlone) ? CUPTI_SUCCESS : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
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

bool subscribe_alone(const Callee& whom) {
  const std::lock_guard lock(g_clients_mutex);
  if (g_clients[0].function.load()) return false;
  g_clients[0].call(whom);
  return true;
}

void unsubscribe_alone() {
  const std::lock_guard lock(g_clients_mutex);
  g_clients[0].call({});
}

CUptiResult join(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function, void* user) {
  if (Machine::get().version() < kFirstShared || !decide(SharingState::kSeveral))
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  const std::lock_guard lock(g_clients_mutex);
  for (uint32_t i = 1; i < kClients; ++i) {
    Client& c = g_clients[i];
    if (c.alive) continue;
    reset_activity_settings(i);
    c.clock.reset(Machine::get().virtual_clock());
    c.call({function, user});
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
  g_clients[index].call({});
  g_clients[index].alive = false;
  forget_buffers(index);
}

void forget_clients() {
  for (uint32_t i = 1; i < kClients; ++i)
    if (g_clients[i].alive) leave(i);
  g_state = SharingState::kUndecided;
}

RecordClock& clock_of(uint32_t client) {
  return client == 0 ? Machine::get().clock() : g_clients[client].clock;
}

OnlyFor::OnlyFor(uint32_t client) { t_only = client; }
OnlyFor::~OnlyFor() { t_only.reset(); }
std::optional<uint32_t> only_for() { return t_only; }

}  // namespace sim
