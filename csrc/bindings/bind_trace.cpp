// Events of trace files for Python: text in, columns out.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/text.h"
#include "trace/event_scanner.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

using NamedKinds = std::vector<std::pair<std::string, std::string>>;

FieldKind kind_of(const std::string& text) {
  if (text == "text") return FieldKind::kText;
  if (text == "integer") return FieldKind::kInteger;
  if (text == "decimal") return FieldKind::kDecimal;
  throw Error(ErrorKind::kResult, "no kind of field: " + text);
}

EventScanner::Fields fields_of(const NamedKinds& named) {
  EventScanner::Fields out;
  for (const auto& [name, kind] : named) out.emplace_back(name, kind_of(kind));
  return out;
}

// The vector becomes the array's memory.
template <typename T>
py::array_t<T> as_array(std::vector<T>& values) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  const auto size = static_cast<py::ssize_t>(owner->size());
  const T* data = owner->data();
  const py::capsule free(owner.get(), [](void* p) { delete static_cast<std::vector<T>*>(p); });
  static_cast<void>(owner.release());
  return py::array_t<T>(size, data, free);
}

// A JSON string without escapes as text; of everything else the token, for a reader of JSON.
py::object value_of(std::string_view token) {
  if (token.size() >= 2 && token.front() == '"' && token.find('\\') == token.npos)
    return visible_text(token.substr(1, token.size() - 2));
  return py::bytes(token.data(), token.size());
}

py::list scanned_columns(EventScanner& self) {
  py::list out;
  for (FieldColumn& c : self.columns())
    out.append(py::make_tuple(c.name, as_array(c.text_events), as_array(c.texts), as_array(c.number_events),
                              as_array(c.numbers)));
  return out;
}

py::list values_of(const EventScanner& self) {
  const StringTable& strings = self.strings();
  py::list out(strings.size());
  for (uint32_t i = 0; i < strings.size(); ++i) out[i] = value_of(strings.at(i));
  return out;
}

py::dict beside_of(const EventScanner& self) {
  py::dict out;
  for (const auto& [name, json] : self.beside()) out[visible_text(name)] = py::bytes(json);
  return out;
}

}  // namespace

void register_trace(py::module_& m) {
  py::class_<EventScanner>(
      m, "EventScanner",
      "Events of a trace in Chrome's JSON format as columns, out of text that comes in "
      "pieces.\n\n`fields`, `args`: (name, \"text\", \"integer\" or \"decimal\") of what "
      "is kept of an event and of its args. The field \"args\" is the whole object in events whose \"cat\" "
      "is "
      "one of `whole_args`; in others it is kept only where it is no object. Events with one of the (field, "
      "text) of "
      "`left_out` have no number.")
      .def(py::init([](const NamedKinds& fields, const NamedKinds& args,
                       const std::vector<std::string>& whole, const NamedKinds& left_out) {
             return std::make_unique<EventScanner>(fields_of(fields), fields_of(args), whole, left_out);
           }),
           py::arg("fields"), py::arg("args"), py::arg("whole_args") = std::vector<std::string>(),
           py::arg("left_out") = NamedKinds())
      .def(
          "feed",
          [](EventScanner& self, const py::bytes& piece) {
            const std::string_view text = piece;
            const py::gil_scoped_release nogil;
            self.feed(text);
          },
          py::arg("piece"), "The next piece. Raises ResultError where the text is no such trace.")
      .def("finish", &EventScanner::finish, py::call_guard<py::gil_scoped_release>(),
           "There is no more. Raises ResultError where the text ends too early.")
      .def_property_readonly("events", &EventScanner::events)
      .def(
          "take_places", [](EventScanner& self) { return as_array(self.places()); },
          "Of each event how many are before it in the file, left out or not (u32). The scanner has none of "
          "it any more.")
      .def_property_readonly("has_array", &EventScanner::has_array,
                             "Whether there was an array of events at all.")
      .def_property_readonly("strangers", &EventScanner::strangers,
                             "Elements of the array of events that are no objects.")
      .def("take_columns", &scanned_columns,
           "(name, events, texts, events, numbers) of each field, arrays: the first two of values kept as "
           "text, by "
           "number of event (u32) and index into values() (u32); the others of numbers (u32, i64; a "
           "decimal's in "
           "thousandths). The scanner has none of them any more.")
      .def("values", &values_of,
           "What texts stand for: str where the file has a string without escapes, else the JSON as bytes.")
      .def("beside", &beside_of,
           "What stands beside the events, by name as the file spells it: JSON as bytes.");
}

}  // namespace cuptiprof
