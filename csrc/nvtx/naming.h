// Handlers of names: of domains, strings, categories, threads and devices. Programs call them on any thread;
// nothing throws.
#pragma once
#include <cstdint>

#include "nvtx/link.h"
#include "nvtx/nvtx_abi.h"

namespace cuptiprof::nvtx {

const Domain* create_domain(const char* name) noexcept;
const Domain* create_domain_wide(const wchar_t* name) noexcept;
const String* register_string(const Domain* domain, const char* text) noexcept;
const String* register_string_wide(const Domain* domain, const wchar_t* text) noexcept;

template <typename Char>
void name_category_of(const Domain* domain, uint32_t category, const Char* name) noexcept;
template <typename Char>
void name_category_default(uint32_t category, const Char* name) noexcept {
  name_category_of<Char>(nullptr, category, name);
}

template <typename Char>
void name_thing(Named what, uint64_t object, const Char* name) noexcept;
template <Named kWhat, typename Object, typename Char>
void name_one(Object object, const Char* name) noexcept {
  name_thing<Char>(kWhat, static_cast<uint64_t>(object), name);
}
// What it is a resource of decides; of other kinds nothing is kept.
const void* create_resource(const Domain* domain, const ResourceAttributes* said) noexcept;

}  // namespace cuptiprof::nvtx
