// The compiled probes: one fatbin a subject (csrc/probes/<subject>.cu), embedded. Empty where there was no
// nvcc.
#pragma once
#include <cstddef>
#include <span>

namespace cuptiprof::probes {

struct Image {
  const char* subject;
  const unsigned char* data;
  size_t size;
};

std::span<const Image> images();

}  // namespace cuptiprof::probes
