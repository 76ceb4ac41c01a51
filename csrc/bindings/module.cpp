// The Python module. Importing it loads no CUDA library and starts no thread.
#include "bindings/bindings.h"

PYBIND11_MODULE(_core, m) {
  m.doc() = "Native part of cuptiprof.";
  cuptiprof::register_errors(m);
  cuptiprof::register_cupti(m);
  cuptiprof::register_counters_plan(m);
  cuptiprof::register_counters(m);
  cuptiprof::register_recorded(m);
  cuptiprof::register_nvtx(m);
  cuptiprof::register_probes(m);
  cuptiprof::register_region(m);
  cuptiprof::register_schema(m);
  cuptiprof::register_filter(m);
  cuptiprof::register_filter_columns(m);
  cuptiprof::register_store(m);
  cuptiprof::register_trace(m);
  cuptiprof::register_event_text(m);
  cuptiprof::register_perfetto(m);
  cuptiprof::register_frames(m);
  cuptiprof::register_torch(m);
  cuptiprof::register_session(m);
}
