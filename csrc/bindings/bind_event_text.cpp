// Columns in, JSON text of events out.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/looked_at.h"
#include "trace/event_text.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

// With the arrays that it looks at.
struct OwnedEventText {
  EventText text;
  LookedAt columns;
};

EventText::Form form_of(const std::string& name) {
  if (name == "number") return EventText::Form::kNumber;
  if (name == "microseconds") return EventText::Form::kMicroseconds;
  if (name == "text") return EventText::Form::kText;
  throw py::value_error("no form of a value: " + name);
}

void add_piece(OwnedEventText& self, const py::bytes& before, const std::optional<py::array>& values,
               const std::string& form, const std::optional<py::array>& shown,
               const std::vector<py::bytes>& texts) {
  EventText::Piece piece;
  piece.before = before;
  piece.form = form_of(form);
  if (values) {
    piece.values = self.columns.column(*values);
    if (piece.values.type == CellType::kF64 && piece.form != EventText::Form::kNumber)
      throw py::type_error("microseconds and indices of texts are integers");
  }
  if (shown) {
    piece.shown = self.columns.mask(*shown);
  }
  for (const py::bytes& text : texts) {
    piece.texts += std::string_view(text);
    piece.text_ends.push_back(piece.texts.size());
  }
  self.text.add(std::move(piece));
}

}  // namespace

void register_event_text(py::module_& m) {
  py::class_<OwnedEventText>(
      m, "EventText",
      "JSON text of a trace's events, a row of columns each: pieces in the order in which "
      "they are added.")
      .def(py::init<>())
      .def("add", &add_piece, py::arg("before"), py::arg("values") = py::none(), py::arg("form") = "number",
           py::arg("shown") = py::none(), py::arg("texts") = std::vector<py::bytes>(),
           "`before` and the row's value, if there are values: a \"number\", \"microseconds\" of integer ns, "
           "or the one of "
           "`texts` (JSON) with that index. Nothing in rows where `shown` (bool) is false.")
      .def(
          "rows",
          [](const OwnedEventText& self, size_t begin, size_t end) {
            if (begin > end || end > self.columns.rows()) throw py::index_error("no such rows");
            std::string out;
            {
              const py::gil_scoped_release nogil;
              self.text.append_rows(out, begin, end);
            }
            return py::bytes(out);
          },
          py::arg("begin"), py::arg("end"), "The text of the rows begin..end-1.");
}

}  // namespace cuptiprof
