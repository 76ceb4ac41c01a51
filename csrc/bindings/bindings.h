// One register_* function per file of this folder; module.cpp calls them all, once, while Python imports the
// module (with the GIL).
#pragma once
#include <pybind11/pybind11.h>

namespace cuptiprof {

class Session;

void register_counters(pybind11::module_& m);
// The part of Session's methods that is about counters; register_session calls it.
void define_counters(pybind11::class_<Session>& session);
// The same of sums while it runs.
void define_live(pybind11::class_<Session>& session);
void register_counters_plan(pybind11::module_& m);
void register_cupti(pybind11::module_& m);
void register_errors(pybind11::module_& m);
void register_frames(pybind11::module_& m);
void register_recorded(pybind11::module_& m);
void register_nvtx(pybind11::module_& m);
void register_probes(pybind11::module_& m);
void register_event_text(pybind11::module_& m);
void register_hand_over(pybind11::module_& m);
void register_perfetto(pybind11::module_& m);
void register_region(pybind11::module_& m);
// The names of regions must be looked up again: the session that gave them their IDs is over. With the GIL.
void forget_region_ids();
void register_schema(pybind11::module_& m);
void register_filter(pybind11::module_& m);
void register_filter_columns(pybind11::module_& m);
void register_session(pybind11::module_& m);
void register_store(pybind11::module_& m);
void register_torch(pybind11::module_& m);
void register_trace(pybind11::module_& m);

}  // namespace cuptiprof
