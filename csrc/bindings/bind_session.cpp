// Session for Python. Every call that can block drops the GIL.
#include "session/session.h"

#include <pybind11/stl.h>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/frames/python_lines.h"
#include "collect/launch_cost.h"
#include "collect/regions/regions.h"
#include "cupti/api.h"
#include "filter/kernel_filter.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

Keep keep_of(const std::string& keep) {
  if (keep == "first") return Keep::kFirst;
  if (keep == "spill") return Keep::kSpill;
  if (keep == "latest") return Keep::kLatest;
  throw py::value_error("no way to keep rows: " + keep);
}

std::unique_ptr<Session> make_session(std::shared_ptr<Api> api, const std::vector<int>& kinds,
                                      const std::string& keep, size_t budget, size_t buffer_size,
                                      size_t buffer_count, size_t device_buffer_size, size_t device_buffers,
                                      bool all_api_calls, bool latency_timestamps, bool profiler_calls,
                                      bool share_cupti, const std::string& label, int drain_timeout_ms,
                                      std::shared_ptr<KernelFilter> filter,
                                      std::optional<CounterOptions> counters, bool follows_launches, int nvtx,
                                      int frames, FrameOrigins frame_origins, bool modules, int operators,
                                      bool operator_shapes, bool live, bool ages_texts) {
  SessionOptions o;
  o.api = std::move(api);
  for (const int k : kinds) o.activity.kinds.push_back(static_cast<CUpti_ActivityKind>(k));
  o.activity.settings = {latency_timestamps, device_buffer_size, device_buffers};
  o.activity.all_api_calls = all_api_calls;
  o.activity.profiler_calls = profiler_calls;
  o.activity.follows_launches = follows_launches;
  o.activity.sharing = share_cupti ? Sharing::kOffers : Sharing::kJoins;
  o.live = live;
  o.ages_texts = ages_texts;
  o.keep = keep_of(keep);
  o.budget_bytes = budget;
  o.buffer_bytes = buffer_size;
  o.buffer_count = buffer_count;
  o.label = label;
  o.drain_timeout_ms = drain_timeout_ms;
  o.filter = std::move(filter);
  o.counters = std::move(counters);
  for (const int level : {nvtx, frames, operators})
    if (level < 0 || level > 2) throw py::value_error("no such level of a source");
  o.sources = {static_cast<ScopeLevel>(nvtx),
               static_cast<FrameLevel>(frames),
               modules,
               {static_cast<ScopeLevel>(operators), operator_shapes}};
  if (o.sources.walks_frames())
    o.start_frames = [level = o.sources.frames, modules, origins = std::move(frame_origins)] {
      const py::gil_scoped_acquire held;
      start_frames(level, modules, origins);
    };
  return std::make_unique<Session>(std::move(o));
}

}  // namespace

void register_session(py::module_& m) {
  const auto nogil = py::call_guard<py::gil_scoped_release>();
  py::class_<Session> session(m, "Session", "One profiling session (cuptiprof.profile wraps it).");
  define_counters(session);
  define_live(session);
  session
      .def(py::init(&make_session), py::kw_only(), py::arg("api"), py::arg("kinds"), py::arg("keep"),
           py::arg("budget"), py::arg("buffer_size") = 0, py::arg("buffer_count") = 0,
           py::arg("device_buffer_size") = 0, py::arg("device_buffers") = 0, py::arg("all_api_calls") = false,
           py::arg("latency_timestamps") = false, py::arg("profiler_calls") = false,
           py::arg("share_cupti") = false, py::arg("label") = "", py::arg("drain_timeout_ms") = 1000,
           py::arg("filter") = nullptr, py::arg("counters") = std::nullopt,
           py::arg("follows_launches") = true, py::arg("nvtx") = 0, py::arg("frames") = 0,
           py::arg("frame_origins") = FrameOrigins{}, py::arg("modules") = false, py::arg("operators") = 0,
           py::arg("operator_shapes") = false, py::arg("live") = false, py::arg("ages_texts") = false)
      .def("start", &Session::start, py::arg("armed") = false, nogil,
           "Attaches to CUPTI; collects at once unless armed. Leaves nothing behind when it raises.")
      .def("pause", &Session::pause, py::arg("waits") = true, nogil,
           "Collects no more; waits: for the GPU, so that records of all that was launched come.")
      .def("resume", &Session::resume, nogil, "Collects (again), also when armed.")
      .def("take", &Session::take, nogil,
           "Completes what was launched so far and hands it over; the session goes on.")
      .def("snapshot", &Session::snapshot, nogil,
           "A copy of what was collected so far; the session goes on, without a pause.")
      .def("discard", &Session::discard, nogil, "Completes what was launched so far and throws it away.")
      .def(
          "stop",
          [](Session& s) {
            std::shared_ptr<Store> rest;
            {
              const py::gil_scoped_release released;
              rest = s.stop();
            }
            forget_region_ids();
            return rest;
          },
          "Everything off; the rest of the data.")
      .def("taken", &Session::taken,
           "What the last take() or stop() handed over; None: nothing, or forgotten.")
      .def("forget_taken", &Session::forget_taken, "The result is finished: taken() and counters begin anew.")
      .def("finalize", &Session::finalize, nogil, "After stop(): takes CUPTI out of the process.")
      .def("next_segment", &Session::next_segment, py::arg("timeout_ms"), nogil,
           "keep=\"spill\": a store to be written to disk, waited for so long; None: there is none.")
      .def_property_readonly("state", &Session::state, "idle, armed, running, paused or stopped")
      .def_property_readonly("cuda_was_up", &Session::cuda_was_up, "CUDA was initialised before start().")
      .def("losses", &Session::losses, "[(counter, value), ...]")
      .def("notes", &Session::notes, "What the result should say beside its numbers.")
      .def(
          "clock_pairs",
          [](Session& s) {
            py::list out;
            for (const ClockPairs::Pair& pair : s.clocks().all()) {
              py::list one;
              one.append(pair.run);
              one.append(pair.unix);
              out.append(one);
            }
            return out;
          },
          "[[run clock, Unix time], ...] in ns: at the start, every few seconds, and when one was added.")
      .def(
          "add_clock_pair", [](Session& s) { s.clocks().add(); }, "Reads both clocks now.")
      .def(
          "counts",
          [](const Session& s) {
            const SessionCounts c = s.counts();
            py::dict d;
            d["launches"] = c.launches;
            d["kernels_received"] = c.kernels_received;
            d["kernels_lost_in_pool"] = c.kernels_lost_in_pool;
            d["graph_launches"] = c.graphs.launches;
            d["graph_launches_unknown"] = c.graphs.unknown_launches;
            d["graph_work"] = c.graphs.work;
            d["graph_work_received"] = c.graphs.received;
            d["without_times"] = c.without_times;
            d["live_bytes"] = c.live_bytes;
            d["decoder_ns"] = c.decoder_ns;
            return d;
          },
          "Launches seen, records received; to be asked at any time.");

  m.def("launch_event_ns", &launch_event_ns,
        "What the event of a launch takes on the launching thread, ns of CPU time: tried out on a ring of "
        "its own.");
  m.def("now_ns", &now_ns, "The run clock, ns.");
  m.def("inherited_session", &Session::inherited,
        "In a process forked while a session ran: what started that session; else empty.");
  m.def("unix_ns", &unix_ns, "CLOCK_REALTIME, ns since 1970.");
  m.def("set_thread_id", &set_thread_id, py::arg("tid"),
        "Thread ID under which the calling thread appears in results; 0: its own.");
  py::list losses;
#define CP_LOSS(name, doc) losses.append(py::make_tuple(#name, doc));
  CP_LOSSES(CP_LOSS)
#undef CP_LOSS
  m.attr("LOSSES") = losses;
}

}  // namespace cuptiprof
