#include "nvtx/naming.h"

#include <string_view>

#include "nvtx/nvtx_text.h"
#include "nvtx/registry.h"

namespace cuptiprof::nvtx {
namespace {

// A text of either width.
struct Text {
  explicit Text(const char* ascii) noexcept : view(text_of(ascii)) {}
  explicit Text(const wchar_t* wide) noexcept : view(text_of(wide, bytes, sizeof bytes)) {}
  char bytes[kMaxText];
  std::string_view view;
};

}  // namespace

const Domain* create_domain(const char* name) noexcept { return make_domain(text_of(name)); }
const Domain* create_domain_wide(const wchar_t* name) noexcept { return make_domain(Text(name).view); }
const String* register_string(const Domain* domain, const char* text) noexcept {
  return make_string(domain, text_of(text));
}
const String* register_string_wide(const Domain* domain, const wchar_t* text) noexcept {
  return make_string(domain, Text(text).view);
}

template <typename Char>
void name_category_of(const Domain* domain, uint32_t category, const Char* name) noexcept {
  name_category(domain, category, Text(name).view);
}
template void name_category_of(const Domain*, uint32_t, const char*) noexcept;
template void name_category_of(const Domain*, uint32_t, const wchar_t*) noexcept;

template <typename Char>
void name_thing(Named what, uint64_t object, const Char* name) noexcept {
  name_object(what, object, Text(name).view);
}
template void name_thing(Named, uint64_t, const char*) noexcept;
template void name_thing(Named, uint64_t, const wchar_t*) noexcept;

const void* create_resource(const Domain*, const ResourceAttributes* said) noexcept {
  // Any address: programs only hand it back to be destroyed.
  static const char handle = 0;
  if (!said || said->version < 1 || said->size < sizeof(ResourceAttributes)) return &handle;
  Named what;
  switch (said->type) {
    case kNativeThread:
      what = Named::kThread;
      break;
    case kCudaDevice:
    case kCudaRuntimeDevice:
      what = Named::kDevice;
      break;
    default:
      return &handle;
  }
  if (said->message_type == kAscii)
    name_thing(what, said->identifier, said->message.ascii);
  else if (said->message_type == kWide)
    name_thing(what, said->identifier, said->message.wide);
  else if (said->message_type == kRegistered)
    if (const String* string = known_string(said->message.registered))
      name_thing(what, said->identifier, string->text);
  return &handle;
}

}  // namespace cuptiprof::nvtx
