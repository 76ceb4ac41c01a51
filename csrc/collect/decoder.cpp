#include "collect/decoder.h"

#include <chrono>

#include "cupti/api.h"

namespace cuptiprof {
namespace {

// Rings are looked at this often even when no buffer completes; a thread that fills a quarter of its ring
// wakes us sooner.
constexpr int kPollMilliseconds = 20;
// Full stores that wait for the disk; while there are as many, the newest keeps growing up to its budget.
constexpr size_t kMaxSegments = 1;
constexpr std::chrono::milliseconds kDiskPatience{500};

}  // namespace

Decoder::Decoder(const Api& api, BufferPool& pool, Losses& losses, Options options)
    : x_api(api),
      x_pool(pool),
      x_losses(losses),
      x_options(std::move(options)),
      x_calls(x_options.correlation_bytes),
      x_regions(x_calls, losses, x_options.attribution),
      x_store(new_store()),
      x_records(api, x_regions, x_calls, losses, x_options.filter, x_options.attribution,
                x_options.keeps_driver_calls),
      x_thread([this] { loop(); }) {}

Decoder::~Decoder() { finish(); }

void Decoder::finish() {
  if (!x_thread.joinable()) return;
  {
    const std::lock_guard lock(x_mutex);
    x_stop = true;
  }
  x_pool.wake();
  x_thread.join();
}

std::unique_ptr<Store> Decoder::new_store() {
  // Spilling holds up to three at once: one that fills, one that waits, one that is being written.
  const size_t bytes = x_options.keep == Keep::kSpill ? x_options.table_bytes / 3 : x_options.table_bytes;
  return std::make_unique<Store>(x_options.keep, bytes, x_losses, x_warmer);
}

void Decoder::loop() {
  for (bool stop = false; !stop;) {
    x_pool.wait(kPollMilliseconds);
    std::deque<const std::function<void()>*> work;
    {
      const std::lock_guard lock(x_mutex);
      work.swap(x_work);
      stop = x_stop;
    }
    pass();
    if (work.empty()) continue;
    for (const auto* w : work) (*w)();
    {
      const std::lock_guard lock(x_mutex);
      x_work_done += work.size();
    }
    x_changed.notify_all();
  }
}

void Decoder::pass() {
  // Buffers first, then rings: the launch event of every record in these buffers is then in a ring already.
  x_pool.take_completed(x_completed);
  x_regions.drain(*x_store);
  for (const CompletedBuffer& buffer : x_completed) {
    x_regions.drain(*x_store);  // rings go on filling while buffers are decoded
    x_records.decode(*x_store, buffer.data, buffer.valid_bytes);
    x_pool.release(buffer.data);
    if (x_store->wants_spill()) hand_over_full_store();
  }
  x_live_bytes.store(x_store->used_bytes(), std::memory_order_relaxed);
  if (x_completed.empty()) return;
  {
    const std::lock_guard lock(x_mutex);
    x_buffers_decoded += x_completed.size();
  }
  x_changed.notify_all();
}

uint64_t Decoder::wait_for_buffers(uint64_t seen, int timeout_ms) {
  std::unique_lock lock(x_mutex);
  x_changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return x_buffers_decoded > seen; });
  return x_buffers_decoded;
}

// keep="spill": gives the full store to the writer. While the disk is behind, decoding waits and the buffer
// pool takes what comes; after kDiskPatience the store fills up to its budget and what does not fit is
// counted.
void Decoder::hand_over_full_store() {
  const auto deadline = std::chrono::steady_clock::now() + kDiskPatience;
  std::unique_lock lock(x_mutex);
  while (x_segments.size() >= kMaxSegments && !x_stop && std::chrono::steady_clock::now() < deadline) {
    x_changed.wait_for(lock, std::chrono::milliseconds(5));
    lock.unlock();
    x_regions.drain(*x_store);
    lock.lock();
  }
  if (x_segments.size() >= kMaxSegments) return;
  auto next = new_store();
  x_segments.push_back(std::shared_ptr<Store>(std::move(x_store)));
  swap_store(std::move(next));
  x_changed.notify_all();
}

void Decoder::swap_store(std::unique_ptr<Store> next) {
  x_store = std::move(next);
  x_regions.forget_string_ids();
  x_records.forget_string_ids();
}

void Decoder::run(const std::function<void()>& work) {
  std::unique_lock lock(x_mutex);
  x_work.push_back(&work);
  const uint64_t ticket = ++x_work_given;
  x_pool.wake();
  x_changed.wait(lock, [&] { return x_work_done >= ticket; });
}

std::shared_ptr<Store> Decoder::take(int64_t now) {
  std::shared_ptr<Store> taken;
  run([&] {
    x_records.give_up_waiting(*x_store);
    x_regions.write_open_regions(*x_store, now);
    auto next = new_store();
    taken = std::move(x_store);
    swap_store(std::move(next));
  });
  return taken;
}

void Decoder::discard() {
  run([&] {
    x_records.give_up_waiting(*x_store);
    swap_store(new_store());
  });
}

std::shared_ptr<Store> Decoder::next_segment(int timeout_ms) {
  std::unique_lock lock(x_mutex);
  x_changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return !x_segments.empty(); });
  if (x_segments.empty()) return nullptr;
  auto segment = std::move(x_segments.front());
  x_segments.pop_front();
  x_changed.notify_all();
  return segment;
}

}  // namespace cuptiprof
