#include "collect/records/decoder.h"

#include <pthread.h>
#include <time.h>

#include <chrono>
#include <new>
#include "collect/buffers/decoder_bell.h"

#include "cupti/api.h"

namespace cuptiprof {
namespace {

// Rings are looked at this often even when no buffer completes; a thread that fills a quarter of its ring
// wakes us sooner.
constexpr int kPollMilliseconds = 20;
// Full stores that wait for the disk; while there are as many, the newest keeps growing up to its budget.
constexpr size_t kMaxSegments = 1;
constexpr std::chrono::milliseconds kDiskPatience{500};
// CUPTI gives a buffer back by itself only when it is full, so that of a slow thread would come after the
// correlation IDs in it were forgotten, and a thread that ended would keep one for good. Plain flushes: a
// forced one takes kernels that still run, with no end, and they never come again.
constexpr std::chrono::milliseconds kFlushPeriod{250};
constexpr std::chrono::milliseconds kLowFlushPeriod{2};  // the first time that few buffers are free
constexpr int kFlushShare = 20;                          // at most one part in so many of this thread's time

}  // namespace

Decoder::Decoder(const SubscriberCalls& calls, BufferPool& pool, Losses& losses, Options options)
    : x_api(calls.api()),
      x_pool(pool),
      x_losses(losses),
      x_options(std::move(options)),
      x_calls(x_options.correlation_bytes, x_options.beside),
      x_graphs(x_options.graph_bytes
                   ? std::make_unique<GraphTracker>(x_options.graph_bytes, x_options.recorded, losses)
                   : nullptr),
      x_operators(x_options.beside.operators ? std::make_unique<OperatorTracker>(x_options.path_bytes, losses)
                                             : nullptr),
      x_regions_owner(new Regions{
          {x_calls, losses, x_options.path_bytes, x_graphs.get(), x_operators.get(), x_options.ages_texts}}),
      x_regions(x_regions_owner->tracker),
      x_store(new_store()),
      x_records(calls, x_regions, x_calls, losses, {x_options.filter, x_options.follows_launches, true}),
      x_completed(pool.buffers()) {
  x_segments.reserve(kMaxSegments);
  x_thread = std::thread([this] { loop(); });
}

Decoder::~Decoder() { finish(); }

void Decoder::finish() {
  if (!x_thread.joinable()) return;
  {
    const std::lock_guard lock(x_mutex);
    x_stop = true;
  }
  g_decoder_bell.ring();
  x_thread.join();
}

int64_t Decoder::cpu_ns() const noexcept { return x_cpu_ns.load(std::memory_order_relaxed); }

std::unique_ptr<Store> Decoder::new_store() {
  // Spilling holds up to three at once: one that fills, one that waits, one that is being written.
  const size_t bytes = x_options.keep == Keep::kSpill ? x_options.table_bytes / 3 : x_options.table_bytes;
  return std::make_unique<Store>(x_options.keep, bytes, x_losses, x_warmer);
}

void Decoder::loop() {
  pthread_setname_np(pthread_self(), "cuptiprof-recs");
  for (bool stop = false; !stop;) {
    g_decoder_bell.wait(x_pool.is_low() ? static_cast<int>(kLowFlushPeriod.count()) : kPollMilliseconds);
    flush_if_due();
    std::vector<const std::function<void()>*> work;
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

// No lock of ours is held: what CUPTI gives back comes to us inside the call. While somebody waits for this
// thread in a driver call CUPTI is left alone, for he may hold a lock of its.
void Decoder::flush_if_due() {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  const bool low = x_pool.is_low();
  if (!low) x_low_period = kLowFlushPeriod;
  if (began < x_flushed + (low ? x_low_period : x_flush_period) || x_pool.is_waited_for()) return;
  if (x_pool.held_by_cupti() != 0) x_api.cuptiActivityFlushAll(0);
  x_flushed = Clock::now();
  if (x_graphs) x_graphs->next_period();
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>((x_flushed - began) * kFlushShare);
  x_flush_period = std::max(kFlushPeriod, rest);
  // What was asked in vain need not be asked again so soon.
  x_low_period = std::min(kFlushPeriod, std::max(x_low_period * (low ? 2 : 1), rest));
  if (x_options.on_flush) x_options.on_flush();
}

template <typename Work>
void Decoder::attempt(Work&& work) noexcept {
  if (has_ended()) return;
  try {
    work();
  } catch (const std::bad_alloc&) {
    // Regions may be half changed: nobody looks at them again, and what they own is left alone.
    static std::atomic<Regions*> abandoned{nullptr};
    Regions* regions = x_regions_owner.release();
    regions->next = abandoned.exchange(regions);
    x_ended.store(true);
  }
}

void Decoder::drain_rings() {
  attempt([&] { x_regions.drain(*x_store); });
  if (!has_ended()) return;
  for (uint32_t i = 0; i < thread_slot_count(); ++i) {
    ThreadSlot& slot = thread_slot(i);
    const bool thread_ended = slot.state.load(std::memory_order_acquire) == SlotState::kThreadEnded;
    slot.ring.drain([](const Event&) {});
    if (thread_ended) recycle_slot(slot);
  }
}

void Decoder::pass() {
  // Buffers first, then rings: the launch event of every record in these buffers is then in a ring already.
  const size_t n = x_pool.take_completed(x_completed.data(), x_completed.size());
  drain_rings();
  age_names();
  for (size_t i = 0; i < n; ++i) {
    const CompletedBuffer& buffer = x_completed[i];
    drain_rings();  // they go on filling while buffers are decoded
    if (buffer.earlier)
      count(x_losses.earlier_session, x_records.records_in(buffer.data, buffer.valid_bytes));
    else if (has_ended())
      x_records.skip(buffer.data, buffer.valid_bytes);
    else
      attempt([&] { x_records.decode(*x_store, buffer.data, buffer.valid_bytes); });
    x_pool.release(buffer.data, buffer.valid_bytes);
    attempt([&] {
      if (x_options.live) x_options.live->look(*x_store);
      if (x_store->wants_spill()) hand_over_full_store();
    });
    age_names();
  }
  if (timespec used{}; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0)
    x_cpu_ns.store(used.tv_sec * int64_t{1'000'000'000} + used.tv_nsec, std::memory_order_relaxed);
  if (x_store) x_live_bytes.store(x_store->used_bytes(), std::memory_order_relaxed);
  if (n == 0) return;
  {
    const std::lock_guard lock(x_mutex);
    x_buffers_decoded += n;
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
    x_regions.drain(*x_store);  // throws as it does elsewhere
    lock.lock();
  }
  if (x_segments.size() >= kMaxSegments) return;
  auto next = new_store();
  x_segments.push_back(std::shared_ptr<Store>(std::move(x_store)));
  swap_store(std::move(next));
  x_changed.notify_all();
}

// After drain_rings().
void Decoder::age_names() {
  if (!x_options.ages_texts) return;
  attempt([&] {
    if (x_store->wants_to_age()) {
      x_regions.renumber_texts(x_store->age(x_regions.frame_texts().texts()));
      x_records.forget_string_ids();
      if (x_options.live) x_options.live->forget_string_ids();
    }
    if (x_regions.wants_to_age_scopes()) {
      x_regions.age_scopes();
      x_records.forget_scopes();
    }
  });
}

void Decoder::swap_store(std::unique_ptr<Store> next) {
  x_store = std::move(next);
  x_regions.forget_string_ids();
  x_records.forget_string_ids();
  if (x_options.live) x_options.live->next_store();
}

void Decoder::run(const std::function<void()>& work) {
  std::unique_lock lock(x_mutex);
  x_work.push_back(&work);
  const uint64_t ticket = ++x_work_given;
  g_decoder_bell.ring();
  x_changed.wait(lock, [&] { return x_work_done >= ticket; });
}

std::shared_ptr<Store> Decoder::take(int64_t now) {
  std::unique_ptr<Store> taken;
  run([&] {
    attempt([&] {
      x_regions.write_open_regions(*x_store, now);
      x_records.add_missing_devices(*x_store);
    });
    x_records.forget_resources();
    taken = std::move(x_store);
    attempt([&] { swap_store(new_store()); });
  });
  if (!taken) taken = new_store();  // memory had run out before; to the caller that is an error like another
  return taken;
}

std::shared_ptr<Store> Decoder::snapshot(int64_t now) {
  std::shared_ptr<Store> copied;
  run([&] {
    if (has_ended()) return;
    if (!x_pool.is_waited_for()) x_api.cuptiActivityFlushAll(0);
    pass();
    attempt([&] { x_records.add_missing_devices(*x_store); });
    if (has_ended()) return;
    try {
      copied = x_store->copy();
      x_regions.forget_string_ids();  // new texts of open regions are the copy's
      x_regions.write_open_regions(*copied, now);
    } catch (const std::bad_alloc&) {
      copied.reset();
    }
    x_regions.forget_string_ids();
  });
  return copied;
}

void Decoder::discard() {
  run([&] {
    attempt([&] {
      x_records.forget_resources();
      swap_store(new_store());
    });
    if (has_ended()) x_store.reset();
  });
}

std::shared_ptr<Store> Decoder::next_segment(int timeout_ms) {
  std::unique_lock lock(x_mutex);
  x_changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return !x_segments.empty(); });
  if (x_segments.empty()) return nullptr;
  auto segment = std::move(x_segments.front());
  x_segments.erase(x_segments.begin());
  x_changed.notify_all();
  return segment;
}

}  // namespace cuptiprof
