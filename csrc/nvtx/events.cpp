#include "nvtx/events.h"

#include <atomic>
#include <cstddef>
#include <string_view>

#include "nvtx/link.h"
#include "nvtx/listening.h"
#include "nvtx/nvtx_text.h"
#include "nvtx/push_pop_stack.h"
#include "nvtx/registry.h"

namespace cuptiprof::nvtx {
namespace {

std::atomic<uint64_t> g_ranges{0};

// A wide text as it is told on.
struct Narrow {
  char bytes[kMaxText];
};

Said plain(std::string_view text) noexcept {
  Said out{};
  out.domain = "";
  out.text = text.data();
  out.text_bytes = text.size();
  return out;
}

void set_payload(Said& out, const EventAttributes& said) noexcept {
  switch (said.payload_type) {
    case kUint64:
      out.payload_kind = PayloadKind::kUnsigned, out.payload.u = said.payload.u64;
      break;
    case kInt64:
      out.payload_kind = PayloadKind::kSigned, out.payload.i = said.payload.i64;
      break;
    case kDouble:
      out.payload_kind = PayloadKind::kFloating, out.payload.f = said.payload.f64;
      break;
    case kUint32:
      out.payload_kind = PayloadKind::kUnsigned, out.payload.u = said.payload.u32;
      break;
    case kInt32:
      out.payload_kind = PayloadKind::kSigned, out.payload.i = said.payload.i32;
      break;
    case kFloat:
      out.payload_kind = PayloadKind::kFloating, out.payload.f = static_cast<double>(said.payload.f32);
      break;
    default:  // none, or the payload extension's: another layout, which we do not read
      break;
  }
}

// `narrow` must live as long as the result.
Said what_was_said(uint32_t domain, const EventAttributes* said, Narrow& narrow) noexcept {
  Said out = plain({});
  out.domain = domain_name(domain);
  out.domain_number = domain;
  // The fields this version has must be there; a later version's structure begins with them.
  if (!said || said->version < 1 || said->size < sizeof(EventAttributes)) return out;
  out.category = said->category;
  out.has_color = said->color_type == kArgb;
  out.color = said->color;
  set_payload(out, *said);
  std::string_view text;
  if (said->message_type == kAscii) {
    text = text_of(said->message.ascii);
  } else if (said->message_type == kWide) {
    text = text_of(said->message.wide, narrow.bytes, sizeof narrow.bytes);
  } else if (said->message_type == kRegistered) {
    if (String* string = known_string(said->message.registered)) {
      text = {string->text, string->bytes};
      if (string->domain == domain) out.label = &string->label;
    }
  }
  out.text = text.data();
  out.text_bytes = text.size();
  return out;
}

int push(const Listener* to, const Said& said) noexcept {
  const uint64_t task = to->task();
  return push_open(to->push(&said, task), task, said.domain_number);
}

uint64_t start(const Said& said) noexcept {
  const uint64_t range = g_ranges.fetch_add(1, std::memory_order_relaxed) + 1;
  if (const Listener* to = listener()) to->start(&said, range);
  return range;
}

}  // namespace

int push_ex(const Domain* domain, const EventAttributes* said) noexcept {
  const uint32_t number = domain_number(domain);
  const Listener* to = listener();
  if (!to) return push_open(0, 0, number);
  Narrow narrow;
  return push(to, what_was_said(number, said, narrow));
}

int push_text(const char* text) noexcept {
  const Listener* to = listener();
  return to ? push(to, plain(text_of(text))) : push_open(0, 0, 0);
}

int push_wide(const wchar_t* text) noexcept {
  const Listener* to = listener();
  if (!to) return push_open(0, 0, 0);
  Narrow narrow;
  return push(to, plain(text_of(text, narrow.bytes, sizeof narrow.bytes)));
}

int pop(const Domain* domain) noexcept {
  const Listener* to = listener();
  const uint64_t task = to ? to->task() : 0;
  OpenRange range;
  if (!pop_open(task, domain_number(domain), &range)) return kNothingToPop;
  if (to && range.id != 0) to->pop(range.id, task);
  return static_cast<int>(range.level);
}

uint64_t start_ex(const Domain* domain, const EventAttributes* said) noexcept {
  Narrow narrow;
  return start(what_was_said(domain_number(domain), said, narrow));
}
uint64_t start_text(const char* text) noexcept { return start(plain(text_of(text))); }
uint64_t start_wide(const wchar_t* text) noexcept {
  Narrow narrow;
  return start(plain(text_of(text, narrow.bytes, sizeof narrow.bytes)));
}

void end(uint64_t range) noexcept {
  if (const Listener* to = listener()) to->end(range);
}

void mark_ex(const Domain* domain, const EventAttributes* said) noexcept {
  const Listener* to = listener();
  if (!to) return;
  Narrow narrow;
  const Said all = what_was_said(domain_number(domain), said, narrow);
  to->mark(&all);
}
void mark_text(const char* text) noexcept {
  const Listener* to = listener();
  if (!to) return;
  const Said all = plain(text_of(text));
  to->mark(&all);
}
void mark_wide(const wchar_t* text) noexcept {
  const Listener* to = listener();
  if (!to) return;
  Narrow narrow;
  const Said all = plain(text_of(text, narrow.bytes, sizeof narrow.bytes));
  to->mark(&all);
}

}  // namespace cuptiprof::nvtx
