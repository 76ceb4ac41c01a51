// Sums of a session that runs, for Python.
#include <pybind11/stl.h>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/text.h"
#include "session/session.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

py::tuple of_work(const WorkSum& sum) { return py::make_tuple(sum.count, sum.bytes, sum.ns); }

py::list of_names(const std::vector<NamedSum>& sums) {
  py::list out;
  for (const NamedSum& s : sums)
    out.append(py::make_tuple(visible_text(s.name), of_work(s.all), of_work(s.since)));
  return out;
}

py::dict of_sums(const LiveSums::Taken& taken) {
  py::dict out;
  out["kernels"] = of_names(taken.kernels);
  out["regions"] = of_names(taken.regions);
  out["kernel_names"] = taken.kernel_names;
  out["region_names"] = taken.region_names;
  py::list copies;
  for (size_t kind = 0; kind < taken.copies.size(); ++kind)
    if (taken.copies[kind].first.count != 0)
      copies.append(
          py::make_tuple(kind, of_work(taken.copies[kind].first), of_work(taken.copies[kind].second)));
  out["copies"] = copies;
  out["sets"] = py::make_tuple(of_work(taken.sets.first), of_work(taken.sets.second));
  out["busy_ns"] = py::cast(taken.busy);
  out["allocations"] = taken.allocations;
  out["allocated"] = taken.allocated;
  out["missed"] = taken.missed;
  return out;
}

std::shared_ptr<LiveSums> sums_of(const Session& session) {
  std::shared_ptr<LiveSums> live = session.live();
  if (!live)
    throw Error(ErrorKind::kSession, "this session makes no sums while it runs", "profile(live=True)");
  return live;
}

py::dict live_sums(const Session& session, size_t most_names) {
  const std::shared_ptr<LiveSums> live = sums_of(session);
  LiveSums::Taken taken;
  {
    const py::gil_scoped_release released;
    taken = live->take(most_names);
  }
  return of_sums(taken);
}

py::dict standing_sums(const Session& session, size_t most_names, size_t room) {
  const std::shared_ptr<LiveSums> live = sums_of(session);
  LiveSums::Taken taken;
  {
    const py::gil_scoped_release released;
    taken = live->standing(most_names, room);
  }
  return of_sums(taken);
}

}  // namespace

void define_live(py::class_<Session>& session) {
  session.def(
      "live_sums", &live_sums, py::arg("most_names"),
      "What was collected since the start, and since the last call: {\"kernels\": [(name, all, since), ...], "
      "...}, each sum (count, bytes, ns). Waits for nothing but the rows of one buffer.");
  session.def("standing_sums", &standing_sums, py::arg("most_names"), py::arg("room"),
              "As live_sums(), but sums of names only grow from call to call: a name that is once among the "
              "`most_names` "
              "keeps a sum of its own, up to `room` of them; the last one, \"(other names)\", is the rest. "
              "Nothing since the last call.");
}

}  // namespace cuptiprof
