// CUPTI's own departure from the process while it is used: after a fatal error it finalizes itself, and
// another tool may call cuptiFinalize. What it was told and asked for is then forgotten, and nothing comes
// any more.
#pragma once
#include <cupti_callbacks.h>

#include <atomic>
#include <string>

#include "cupti/api.h"

namespace cuptiprof {

class Departure {
 public:
  // Of a new subscription, whose callbacks are not on yet; then they are.
  void begin() noexcept {
    x_watching.store(false);
    x_gone.store(false);
    x_result.store(0);
    x_claimed.store(false);
  }
  void watch() noexcept { x_watching.store(true); }
  // The state callback: only remembers (the error may come on any thread, with anything locked).
  void told(CUpti_CallbackId cbid, const CUpti_StateData& state) noexcept;
  // Nobody tells of another tool's cuptiFinalize: asks whether CUPTI still knows the subscription, by a
  // callback that is on as long as it lives.
  void look(const Api& api, CUpti_SubscriberHandle subscriber) noexcept;

  [[nodiscard]] bool happened() const noexcept { return x_gone.load(std::memory_order_acquire); }
  // For people.
  [[nodiscard]] std::string text() const;

 private:
  std::atomic<bool> x_watching{false};
  std::atomic<bool> x_gone{false};
  std::atomic<bool> x_claimed{false};  // somebody writes, or wrote, the message
  std::atomic<int> x_result{0};        // of a fatal error; 0: none was reported
  char x_message[256] = "";
};

}  // namespace cuptiprof
