#include "session/session.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "base/clock.h"
#include "base/error.h"
#include "collect/nvtx/listener.h"
#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
#include "counters/make_strategy.h"
#include "cupti/api.h"
#include "launch/launch_gate.h"
#include "threads/thread_slots.h"

namespace cuptiprof {
namespace {

constexpr size_t kMinBudget = 4u << 20;
constexpr size_t kDefaultBuffer = 256u << 10;
constexpr size_t kMinBuffer = 4u << 10;

std::mutex g_mutex;       // guards the two below; held over a fork
std::string g_holder;     // label of the session that runs; empty: none
std::string g_inherited;  // the same, of the process that forked this one, at that moment
constexpr const char* kUseSpawn =
    "CUDA and CUPTI do not work after a fork; to profile a child process start it with multiprocessing's "
    "\"spawn\" method";

std::string megabytes(size_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }

// A forked child has no decoder thread and must not touch CUDA: regions and callbacks go quiet there.
void before_fork() { g_mutex.lock(); }
void after_fork() { g_mutex.unlock(); }
void quiet_in_child() {
  if (!g_holder.empty()) g_inherited = g_holder;
  g_holder.clear();
  g_mutex.unlock();
  g_region_mode.store(0);
  leave_nvtx_to_parent();
  g_launch_gate.close();
  Activity::instance().leave_to_parent();
}

// One session, or one that finalizes CUPTI, at a time. Throws Error when the place is taken.
void take_place(const std::string& label) {
  const std::lock_guard lock(g_mutex);
  if (!g_inherited.empty())
    throw Error(ErrorKind::kSession,
                "this process was forked from one whose cuptiprof session was running: " + g_inherited,
                kUseSpawn);
  if (!g_holder.empty())
    throw Error(ErrorKind::kSession, "another cuptiprof session is running: " + g_holder,
                "stop it first; one process can have one session at a time");
  g_holder = label.empty() ? "(unnamed)" : label;
}

void leave_place() noexcept {
  const std::lock_guard lock(g_mutex);
  g_holder.clear();
}

std::vector<CUcontext> used_contexts() { return Activity::instance().contexts(); }

std::mutex g_hanging_mutex;  // guards the list
// Counters whose launch hung inside CUPTI when their session ended: it will come back into them some day.
std::vector<std::shared_ptr<CounterStrategy>>& hanging() {
  static auto* list = new std::vector<std::shared_ptr<CounterStrategy>>;
  return *list;
}

bool asks_for_steps(const SessionOptions& o) {
  const auto any = [](const std::shared_ptr<const KernelFilter>& f) { return f && !f->spec().steps.empty(); };
  return any(o.filter) || (o.counters && any(o.counters->selector.filter));
}

// In a forked child: they are never destroyed.
void leave_to_parent(std::shared_ptr<CounterStrategy> counters) {
  static auto* kept = new std::vector<std::shared_ptr<CounterStrategy>>;
  kept->push_back(std::move(counters));
}

// Forgets those that came back since. False: some still hang.
bool none_hangs() {
  const std::lock_guard lock(g_hanging_mutex);
  std::erase_if(hanging(), [](const auto& counters) {
    // A thread that ended left for good, though nobody saw it.
    if (!Activity::instance().is_inside(counters->launch_observer())) counters->everyone_left();
    return counters->finish({});
  });
  return hanging().empty();
}

}  // namespace

Session::Session(SessionOptions options) : x_options(std::move(options)) {
  static const int registered = pthread_atfork(&before_fork, &after_fork, &quiet_in_child);
  static_cast<void>(registered);
  SessionOptions& o = x_options;
  if (o.budget_bytes < kMinBudget)
    throw Error(ErrorKind::kBudget, "budget too small: " + std::to_string(o.budget_bytes) + " bytes",
                "give at least " + megabytes(kMinBudget) + ", for example budget=\"64 MB\"");
  if (o.live) x_live = std::make_shared<LiveSums>();
  if (o.buffer_bytes == 0) o.buffer_bytes = kDefaultBuffer;
  if (o.buffer_bytes < kMinBuffer || o.buffer_bytes % 8 != 0)
    throw Error(ErrorKind::kBudget, "buffer_size must be a multiple of 8 and at least 4096 bytes",
                "try \"256 KB\"");
  if (o.buffer_count == 0) o.buffer_count = std::clamp<size_t>(o.budget_bytes / 8 / o.buffer_bytes, 4, 1024);
  const bool fits = o.buffer_count <= o.budget_bytes / o.buffer_bytes;  // the product does not overflow
  const size_t fixed = fits ? o.buffer_bytes * o.buffer_count + o.budget_bytes / 16 + region_bytes() +
                                  label_bytes() + graph_bytes()
                            : o.budget_bytes;
  if (fixed + (1u << 20) > o.budget_bytes)
    throw Error(ErrorKind::kBudget,
                std::to_string(o.buffer_count) + " buffers of " + std::to_string(o.buffer_bytes) +
                    " bytes leave no room for tables in a budget of " + megabytes(o.budget_bytes),
                "give a larger budget= or fewer, smaller buffers");
  x_table_bytes = o.budget_bytes - fixed;
  o.activity.buffer_bytes = o.buffer_bytes;
  o.activity.buffer_count = o.buffer_count;
  if (!o.activity.follows_launches && (o.counters || o.activity.profiler_calls))
    throw Error(ErrorKind::kSession, "this session needs launch callbacks", "follow launches");
  // Counters are outside of what subscribers can share; one graph record a launch would be everybody's choice
  // for the life of the process.
  if (o.counters || o.activity.collects(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) {
    if (o.activity.sharing == Sharing::kOffers)
      throw Error(ErrorKind::kSession, "this session cannot share CUPTI",
                  "counters and the activity \"graph\" need it alone: leave share_cupti out");
    o.activity.sharing = Sharing::kNever;
  }
  if (o.counters) {
    if (o.counters->row_bytes == 0) o.counters->row_bytes = x_table_bytes / 4;
    x_table_bytes -= std::min(o.counters->row_bytes, x_table_bytes / 2);
  }
}

Session::~Session() {
  if (x_pid != 0 && x_pid != getpid()) {
    // A forked child: the threads that these would join do not exist here, and CUPTI is the parent's.
    static_cast<void>(x_decoder.release());
    leave_to_parent(std::move(x_counters));
    return;
  }
  if (x_state != State::kIdle && x_state != State::kStopped) {
    try {
      stop();
    } catch (...) {
    }
  }
}

std::string Session::inherited() {
  const std::lock_guard lock(g_mutex);
  return g_inherited;
}

void Session::require(bool ok, const char* call) const {
  refuse_in_child();
  if (!ok)
    throw Error(ErrorKind::kSession, std::string(call) + " while the session is " + state(),
                x_state == State::kIdle      ? "call start() first"
                : x_state == State::kStopped ? "make a new profile(); a stopped one cannot go on"
                                             : "");
}

void Session::refuse_in_child() const {
  if (x_pid != 0 && x_pid != getpid())
    throw Error(ErrorKind::kSession, "this session belongs to the process that forked this one", kUseSpawn);
}

const char* Session::state() const {
  switch (x_state) {
    case State::kIdle:
      return "idle";
    case State::kArmed:
      return "armed";
    case State::kRunning:
      return x_options.activity.profiler_calls && !Activity::instance().window_open() ? "armed" : "running";
    case State::kPaused:
      return "paused";
    case State::kStopped:
      return "stopped";
  }
  return "";
}

void Session::start(bool armed) {
  require(x_state == State::kIdle, "start()");
  take_place(x_options.label);
  x_pid = getpid();
  Activity& activity = Activity::instance();
  try {
    if (x_options.sources.walks_frames()) x_options.start_frames();
    activity.attach(x_options.api, x_options.activity);
    Decoder::Options d;
    d.keep = x_options.keep;
    d.table_bytes = x_table_bytes;
    d.correlation_bytes = x_options.budget_bytes / 16;
    d.path_bytes = region_bytes();
    set_label_budget(label_bytes());
    if (g_scope_trie.wants_to_age()) g_scope_trie.age();  // what earlier sessions left only takes room
    LaunchScopes::forget_all();
    g_running_step.store(0, std::memory_order_relaxed);
    d.beside = {.origins = x_options.sources.at_launch(),
                .start_end = x_options.sources.nvtx != ScopeLevel::kOff,
                .operators = x_options.sources.operators.level == ScopeLevel::kFull};
    if (activity.follows_nodes()) {
      d.graph_bytes = graph_bytes();
      d.recorded = {x_options.activity.collects_kernels(),
                    x_options.activity.collects(CUPTI_ACTIVITY_KIND_MEMCPY),
                    x_options.activity.collects(CUPTI_ACTIVITY_KIND_MEMSET)};
    }
    d.filter = x_options.filter;
    d.live = x_live;
    d.ages_texts = x_options.ages_texts;
    d.follows_launches = x_options.activity.follows_launches;
    d.on_flush = [this, &activity] {
      activity.watch_buffers();
      x_clocks.look();
    };
    x_decoder = std::make_unique<Decoder>(activity.calls(), activity.pool(), activity.losses(), std::move(d));
    // A program that marks steps is in its first one until it marks the next.
    if (asks_for_steps(x_options)) mark_step(0);
    if (x_options.counters) start_counters();
    listen_to_nvtx(x_options.sources.nvtx);
    torch::observe_operators(x_options.sources.operators);
    x_state = State::kArmed;
    if (!armed) resume();
    x_clocks.restart();
  } catch (...) {
    listen_to_nvtx(ScopeLevel::kOff);
    torch::observe_operators({});
    stop_counters({});
    x_counters.reset();
    activity.detach();
    x_decoder.reset();
    g_frame_source.store(nullptr);
    g_module_source.store(nullptr);
    forget_labels();
    x_state = State::kIdle;
    x_pid = 0;
    leave_place();
    throw;
  }
}

void Session::start_counters() {
  none_hangs();
  CounterOptions options = *x_options.counters;
  options.selector.label = &scope_label;
  options.contexts = &used_contexts;
  options.keep_latest_rows = x_options.keep != Keep::kFirst;
  options.waits_for_window = x_options.activity.profiler_calls;
  x_counters = make_strategy(x_options.api, std::move(options));
  x_counters->begin();
  x_counters->pause({});
  x_counters->rows().clear();  // samples from before the start
  Activity::instance().observe({.launches = x_counters->launch_observer(),
                                .regions = x_counters->region_observer(),
                                .keeps_paths = true});
  judge_step();
}

// Launches of a step of which none is wanted end at the gate.
void Session::judge_step() noexcept {
  const LaunchObserver* observer = x_counters ? x_counters->launch_observer() : nullptr;
  g_launch_gate.refuse_step(observer &&
                            observer->refuses_step(g_running_step.load(std::memory_order_relaxed)));
}

void Session::stop_counters(Deadline captures) noexcept {
  if (!x_counters) return;
  const bool all_left = Activity::instance().observe({});
  const bool finished = x_counters->finish(captures);
  x_counters->clocks().release();
  if (finished && all_left) return;
  const std::lock_guard lock(g_hanging_mutex);
  hanging().push_back(x_counters);
}

void Session::step(uint32_t number) {
  require(x_state == State::kRunning || x_state == State::kPaused || x_state == State::kArmed, "step()");
  mark_step(number);
  judge_step();
  // Steps in which nothing is collected take no turn among the pass groups.
  if (x_counters && x_state == State::kRunning) x_counters->step();
}

bool Session::next_pass() {
  require(x_state == State::kRunning, "repeat()");
  return x_counters && x_counters->next_pass();
}

void Session::abandon_passes() {
  refuse_in_child();
  if (x_counters && x_state != State::kStopped) x_counters->abandon_passes();
}

const CounterRows::Taken* Session::take_counters() {
  if (!x_counters) return nullptr;
  if (!x_taken_counters) x_taken_counters = x_counters->rows().take();
  return &*x_taken_counters;
}

void Session::forget_taken() noexcept {
  x_taken.reset();
  x_taken_counters.reset();
}

void Session::resume() {
  require(x_state == State::kArmed || x_state == State::kPaused, "resume()");
  Activity::instance().enable();
  if (x_counters) x_counters->resume();
  x_state = State::kRunning;
}

void Session::pause(bool waits) {
  require(x_state == State::kRunning, "pause()");
  const Deadline captures = capture_deadline();
  if (x_counters) x_counters->pause(captures);
  Activity::instance().disable(captures, waits);
  x_state = State::kPaused;
}

Deadline Session::capture_deadline() const noexcept {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(x_options.drain_timeout_ms);
}

std::shared_ptr<Store> Session::take() {
  require(x_state == State::kRunning || x_state == State::kPaused, "take()");
  const Deadline captures = capture_deadline();
  if (x_counters) {
    x_counters->complete(captures);
    x_counters->kept();
  }
  Activity::instance().complete(*x_decoder, x_options.drain_timeout_ms, captures);
  forget_taken();
  return x_taken = x_decoder->take(now_ns());
}

std::shared_ptr<Store> Session::snapshot() {
  require(x_state == State::kRunning || x_state == State::kPaused, "snapshot()");
  if (x_counters)
    throw Error(ErrorKind::kSession, "snapshot() while counters are read", "stop the session for its result");
  auto copied = x_decoder->snapshot(now_ns());
  if (!copied)
    throw Error(ErrorKind::kBudget, "no memory for a copy of what was collected",
                "a snapshot takes as much as the session holds: give the session a smaller budget=");
  return copied;
}

void Session::discard() {
  require(x_state == State::kRunning || x_state == State::kPaused, "discard()");
  const Deadline captures = capture_deadline();
  if (x_counters) {
    x_counters->complete(captures);
    x_counters->rows().clear();
    x_counters->discarded();
  }
  Activity::instance().complete(*x_decoder, x_options.drain_timeout_ms, captures);
  x_decoder->discard();
}

std::shared_ptr<Store> Session::stop() {
  require(x_state != State::kIdle && x_state != State::kStopped, "stop()");
  Activity& activity = Activity::instance();
  const int64_t end = now_ns();
  const Deadline captures = capture_deadline();
  stop_counters(captures);
  activity.disable(captures);
  listen_to_nvtx(ScopeLevel::kOff);
  torch::observe_operators({});
  try {
    activity.complete(*x_decoder, x_options.drain_timeout_ms, captures);
  } catch (const Error&) {
    // The flush failed: what reached us is kept, what did not shows up as unreconciled launches.
    x_decoder->fence();  // a buffer is read with the subscriber it was written for
  }
  activity.detach();
  forget_taken();
  x_taken = x_decoder->take(end);
  x_final = counts();
  x_final.launches = activity.launches_at_completion();
  x_decoder->finish();
  g_frame_source.store(nullptr);
  g_module_source.store(nullptr);
  forget_labels();
  x_state = State::kStopped;
  leave_place();
  return x_taken;
}

void Session::finalize() {
  require(x_state == State::kStopped, "detach(finalize=True)");
  take_place("detach(finalize=True)");
  try {
    if (!none_hangs())
      throw Error(ErrorKind::kSession, "a launch whose counters were read still hangs inside CUPTI",
                  "wait for that launch to end, then detach again");
    Activity::instance().finalize(*x_options.api);
  } catch (...) {
    leave_place();
    throw;
  }
  leave_place();
}

std::shared_ptr<Store> Session::next_segment(int timeout_ms) {
  return x_decoder ? x_decoder->next_segment(timeout_ms) : nullptr;
}

SessionCounts Session::counts() const {
  if (!x_decoder || x_state == State::kStopped) return x_final;
  const Activity& activity = Activity::instance();
  return {activity.launches(),       x_decoder->kernels_received(), activity.kernels_lost_in_pool(),
          x_decoder->graph_counts(), x_decoder->without_times(),    x_decoder->live_bytes(),
          x_decoder->cpu_ns()};
}

std::vector<std::pair<std::string, uint64_t>> Session::losses() const {
  std::vector<std::pair<std::string, uint64_t>> out;
  const Losses& l = Activity::instance().losses();
#define CP_LOSS(name, doc) out.emplace_back(#name, l.name.load());
  CP_LOSSES(CP_LOSS)
#undef CP_LOSS
  return out;
}

}  // namespace cuptiprof
