// Columns of NumPy's that are only looked at: where they lie, and of which type their cells are.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuptiprof {

enum class CellType : uint8_t { kI64, kU64, kI32, kU32, kU16, kU8, kF64 };

struct CellColumn {
  const void* values = nullptr;
  CellType type = CellType::kI64;

  explicit operator bool() const noexcept { return values != nullptr; }

  template <typename T>
  T cell(size_t row) const noexcept {
    return static_cast<const T*>(values)[row];
  }

  // 64 bits without a sign keep their bits; a float64 is 0.
  int64_t integer(size_t row) const noexcept {
    switch (type) {
      case CellType::kI64:
        return cell<int64_t>(row);
      case CellType::kU64:
        return static_cast<int64_t>(cell<uint64_t>(row));
      case CellType::kI32:
        return cell<int32_t>(row);
      case CellType::kU32:
        return cell<uint32_t>(row);
      case CellType::kU16:
        return cell<uint16_t>(row);
      case CellType::kU8:
        return cell<uint8_t>(row);
      case CellType::kF64:
        break;
    }
    return 0;
  }
};

}  // namespace cuptiprof
