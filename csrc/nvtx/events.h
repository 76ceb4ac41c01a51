// Handlers of ranges and marks. Programs call them on any thread; nothing throws.
#pragma once
#include <cstdint>

#include "nvtx/nvtx_abi.h"

namespace cuptiprof::nvtx {

int push_ex(const Domain* domain, const EventAttributes* said) noexcept;
int push_text(const char* text) noexcept;
int push_wide(const wchar_t* text) noexcept;
int pop(const Domain* domain) noexcept;
// A number that no other range of this process has.
uint64_t start_ex(const Domain* domain, const EventAttributes* said) noexcept;
uint64_t start_text(const char* text) noexcept;
uint64_t start_wide(const wchar_t* text) noexcept;
void end(uint64_t range) noexcept;
void mark_ex(const Domain* domain, const EventAttributes* said) noexcept;
void mark_text(const char* text) noexcept;
void mark_wide(const wchar_t* text) noexcept;

}  // namespace cuptiprof::nvtx
