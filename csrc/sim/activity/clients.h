// Who uses the library: the calls without a subscriber and the only subscriber (one client, 0), or several
// subscribers with calls of their own (13.3), each with its kinds, attributes, clock, buffers and callbacks.
// Who joins and leaves does so in a control call; the rest is asked by every thread that records or calls
// back.
#pragma once
#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "sim/machine/record_clock.h"

namespace sim {

constexpr uint32_t kClients = 8;
using ClientSet = uint8_t;  // a bit a client
constexpr ClientSet bit(uint32_t client) { return static_cast<ClientSet>(1u << client); }
inline void set(std::atomic<ClientSet>& clients, uint32_t client, bool on) {
  on ? clients.fetch_or(bit(client)) : clients.fetch_and(static_cast<ClientSet>(~bit(client)));
}

// Whom callbacks go to.
struct Callee {
  CUpti_CallbackFunc function = nullptr;  // null: nobody
  void* user = nullptr;
};

struct Client {
  // Function and argument go together, whoever subscribes while a callback is on its way.
  [[nodiscard]] Callee callee() const {
    for (;;) {
      const uint32_t before = changes.load();
      const Callee found{function.load(), user.load()};
      if (before % 2 == 0 && changes.load() == before) return found;
    }
  }
  // One caller at a time.
  void call(const Callee& whom) {
    ++changes;
    user = whom.user;
    function = whom.function;
    ++changes;
  }

  std::atomic<uint32_t> changes{0};  // odd: one is being made
  std::atomic<CUpti_CallbackFunc> function{nullptr};
  std::atomic<void*> user{nullptr};
  std::atomic<bool> alive{false};
  RecordClock clock;  // of subscribers among several; the machine's is client 0's
};
Client& client(uint32_t index);

// Several subscribers, since the first of them asked for it; until cuptiFinalize.
bool sharing();
// How the process uses CUPTI, until cuptiFinalize: the first call that needs to know decides. Numbers of
// CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE.
enum class SharingState : uint8_t { kAlone = 0, kSeveral = 1, kUndecided = 2 };
SharingState sharing_state();
// First in calls without a subscriber: refused where several share.
CUptiResult of_the_only_client();
// The client of a handle among several; 0: it is none.
uint32_t shared_client(CUpti_SubscriberHandle handle);
// Subscribers there are.
uint32_t subscribers();
// The only one. False: there is one already.
bool subscribe_alone(const Callee& whom);
void unsubscribe_alone();
// A new one among several: its handle.
CUptiResult join(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function, void* user);
void leave(uint32_t index);
// All of them leave, and nothing is decided any more.
void forget_clients();

RecordClock& clock_of(uint32_t client);

// Who alone shall get the records of this thread meanwhile.
class OnlyFor {
 public:
  explicit OnlyFor(uint32_t client);
  ~OnlyFor();
  OnlyFor(const OnlyFor&) = delete;
};
// None: everybody who wants them.
std::optional<uint32_t> only_for();

}  // namespace sim

// First in calls without a subscriber (of_the_only_client).
#define SIM_ALONE \
  if (const CUptiResult shared = ::sim::of_the_only_client(); shared != CUPTI_SUCCESS) return shared
