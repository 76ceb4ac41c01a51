// One simulated CUDA call after another: callbacks, work, records.
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>

#include <algorithm>

#include "sim/activity/callbacks.h"
#include "sim/activity/records.h"
#include "sim/activity/wanted_records.h"
#include "sim/calls/call_ids.h"
#include "sim/calls/graphs.h"
#include "sim/calls/run_work.h"
#include "sim/machine/current_context.h"
#include "sim/machine/inside.h"
#include "sim/machine/machine.h"
#include "sim/machine/name_memory.h"
#include "sim/machine/stream_captures.h"

namespace sim {
namespace {

bool is_work(const cuptisim_op& op) {
  return op.kind == CUPTISIM_OP_KERNEL || op.kind == CUPTISIM_OP_MEMCPY ||
         op.kind == CUPTISIM_OP_MEMCPY_PEER || op.kind == CUPTISIM_OP_MEMSET;
}

uint64_t begin_call(const Call& c) {
  Machine& m = Machine::get();
  if (!(c.op.flags & CUPTISIM_API_TIMES)) return m.now();
  m.advance(c.op.api_start);
  return c.op.api_start;
}

uint64_t end_call(const Call& c) {
  Machine& m = Machine::get();
  // The clock stays at the start: what other threads did during this call is yet to come.
  if (c.op.flags & CUPTISIM_API_TIMES) return c.op.api_end;
  if (m.virtual_clock()) m.advance(c.begin + m.api_call_ns());
  return m.now();
}

uint32_t work(const Call& c) {
  Machine& m = Machine::get();
  const cuptisim_op& op = c.op;
  if (op.flags & CUPTISIM_ADD_NODE) return add_node(c);
  if (const Captured by = captured(c.context, c.stream); by.graph) {
    if (by.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    capture_node(c, by.graph);
    return CUDA_SUCCESS;
  }
  const uint32_t graph = op.graph_node_id ? op.graph_id : 0;
  Placed at{};
  const uint32_t rc = run_work(
      {op, *c.context, c.stream, c.correlation, c.begin, op.graph_node_id, graph, {}}, Recording::kYes, at);
  if (rc != CUDA_SUCCESS) return rc;
  // One kernel on each device, all under the call's correlation ID.
  if (op.kind == CUPTISIM_OP_KERNEL && op.domain == CUPTI_CB_DOMAIN_DRIVER_API &&
      op.cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice)
    for (uint32_t d = 0; d < m.devices(); ++d) {
      if (d == c.context->device) continue;
      Placed there{};
      run_work({op, *m.context(d, 0), kDefaultStream, c.correlation, c.begin, 0, 0, {}}, Recording::kYes,
               there);
    }
  constexpr int kGiven = CUPTISIM_API_TIMES | CUPTISIM_GPU_TIMES | CUPTISIM_NO_API;
  if (op.kind == CUPTISIM_OP_KERNEL && !(op.flags & kGiven))
    if (const uint64_t full = m.now(); m.queue(m.stream(c.context, c.stream), c.begin, at.end))
      emit_full_queue_record(c, full);
  const bool waits = op.kind != CUPTISIM_OP_KERNEL && !(op.flags & (CUPTISIM_ASYNC | CUPTISIM_API_TIMES));
  if (waits) m.wait_until(at.end);
  return CUDA_SUCCESS;
}

uint32_t record_event(const Call& c) {
  Machine& m = Machine::get();
  const uint64_t at = std::max(m.stream(c.context, c.stream).busy_until.load(), c.begin);
  const Event e = m.record_event(c.op.event, at, captured(c.context, c.stream).graph_id);
  emit_event_record(c, e.sync_id, at);
  return CUDA_SUCCESS;
}

uint32_t wait_for_event(const Call& c) {
  Machine& m = Machine::get();
  const Event e = m.event(c.op.event);
  if (e.capture)
    join_sequence(c.context, c.stream, e.capture);
  else if (e.at != 0)
    m.occupy(c.context, m.stream(c.context, c.stream), e.at);
  return CUDA_SUCCESS;
}

// Explicit times describe a call: no wait is left to do.
uint32_t synchronize(const Call& c) {
  Machine& m = Machine::get();
  const bool whole_context = c.op.kind == CUPTISIM_OP_SYNC_CONTEXT;
  if (c.op.flags & CUPTISIM_API_TIMES) return CUDA_SUCCESS;
  // What is being captured has not been given to the GPU: there is nothing to wait for, and asking breaks it.
  if (whole_context) {
    if (invalidate_captures(c.context)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  } else if (c.op.kind == CUPTISIM_OP_SYNC_EVENT) {
    if (const uint32_t graph = m.event(c.op.event).capture; graph != 0) {
      invalidate_capture(graph);
      return CUDA_ERROR_CAPTURED_EVENT;
    }
  } else if (invalidate_capture(c.context, c.stream)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (whole_context)
    m.wait_until(c.context->busy_until.load());
  else
    m.wait_until(c.op.kind == CUPTISIM_OP_SYNC_EVENT ? m.event(c.op.event).at
                                                     : m.stream(c.context, c.stream).busy_until.load());
  return CUDA_SUCCESS;
}

CUcontext handle(const Context* c) { return reinterpret_cast<CUcontext>(const_cast<Context*>(c)); }

// What a call does between its entry and its exit; returns a CUresult.
uint32_t body(const Call& c) {
  Machine& m = Machine::get();
  const auto stream_handle = [&] { return reinterpret_cast<CUstream>(&m.stream(c.context, c.stream)); };
  switch (c.op.kind) {
    case CUPTISIM_OP_KERNEL:
    case CUPTISIM_OP_MEMCPY:
    case CUPTISIM_OP_MEMCPY_PEER:
    case CUPTISIM_OP_MEMSET:
      return work(c);
    case CUPTISIM_OP_GRAPH_BEGIN_CAPTURE:
      return begin_capture(c);
    case CUPTISIM_OP_GRAPH_END_CAPTURE:
      return end_capture(c);
    case CUPTISIM_OP_GRAPH_INSTANTIATE:
      return instantiate_graph(c);
    case CUPTISIM_OP_GRAPH_LAUNCH:
      return launch_graph(c);
    case CUPTISIM_OP_GRAPH_CREATE:
      return create_graph(c);
    case CUPTISIM_OP_GRAPH_ADD_CHILD:
      return add_child_graph(c);
    case CUPTISIM_OP_GRAPH_CLONE:
      return clone_graph(c);
    case CUPTISIM_OP_GRAPH_DESTROY_NODE:
      return destroy_node(c);
    case CUPTISIM_OP_GRAPH_DESTROY:
      return destroy_graph(c);
    case CUPTISIM_OP_GRAPH_EXEC_UPDATE:
      return update_executable(c);
    case CUPTISIM_OP_GRAPH_EXEC_SET_NODE:
      return set_executable_node(c);
    case CUPTISIM_OP_GRAPH_EXEC_DESTROY:
      return destroy_executable(c);
    case CUPTISIM_OP_SYNC_STREAM:
    case CUPTISIM_OP_SYNC_EVENT:
    case CUPTISIM_OP_SYNC_CONTEXT:
      return synchronize(c);
    case CUPTISIM_OP_EVENT_RECORD:
      return record_event(c);
    case CUPTISIM_OP_STREAM_WAIT_EVENT:
      return wait_for_event(c);
    case CUPTISIM_OP_ALLOC:
    case CUPTISIM_OP_FREE:
      if (!(c.op.flags & (CUPTISIM_ASYNC | CUPTISIM_API_TIMES)) && unsafe_call_conflicts())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
      if (c.result == CUDA_SUCCESS) emit_memory_record(c);  // else there is no memory to tell of
      return CUDA_SUCCESS;
    case CUPTISIM_OP_MEMORY_POOL:
      emit_memory_pool_record(c);
      return CUDA_SUCCESS;
    case CUPTISIM_OP_STREAM_CREATE: {
      Stream& s = m.stream(c.context, c.stream);
      s.priority = c.op.priority;
      s.created = true;
      emit_stream_record(c);
      resource_callback(CUPTI_CBID_RESOURCE_STREAM_CREATED, handle(c.context), stream_handle());
      return CUDA_SUCCESS;
    }
    case CUPTISIM_OP_STREAM_DESTROY:
      drop_captures(c.context, c.stream);
      m.stream(c.context, c.stream).created = false;
      resource_callback(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, handle(c.context), stream_handle());
      return CUDA_SUCCESS;
    case CUPTISIM_OP_CONTEXT_DESTROY:
      m.wait_until(c.context->busy_until.load());
      drop_captures(c.context);
      resource_callback(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, handle(c.context));
      m.destroy_context(c.context);
      return CUDA_SUCCESS;
    case CUPTISIM_OP_MODULE_UNLOAD: {
      if (unsafe_call_conflicts()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
      CUpti_ModuleResourceData module{};
      module.moduleId = c.context->id;
      resource_callback(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, handle(c.context), nullptr, &module);
      unload_names();
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_SUCCESS;
  }
}

void sync_records(const Call& c, uint64_t end) {
  switch (c.op.kind) {
    case CUPTISIM_OP_SYNC_STREAM:
      return emit_sync_record(c, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, end);
    case CUPTISIM_OP_SYNC_CONTEXT:
      return emit_sync_record(c, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, end);
    case CUPTISIM_OP_SYNC_EVENT:
      return emit_sync_record(c, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, end);
    case CUPTISIM_OP_STREAM_WAIT_EVENT:
      return emit_sync_record(c, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, end);
    default:
      return;
  }
}

uint32_t correlation_of(const cuptisim_op& op) {
  auto& next = Machine::get().next_correlation;
  if (!op.correlation) return next.fetch_add(1, std::memory_order_relaxed) + 1;
  uint32_t seen = next.load(std::memory_order_relaxed);
  while (seen < op.correlation && !next.compare_exchange_weak(seen, op.correlation)) {
  }
  return op.correlation;
}

// A call as subscribers see it: told of its entry now, of its exit at the end of the scope. Both share a
// scratch word.
class Announced {
 public:
  Announced(Call& c, Api api, CUpti_CallbackId cbid)
      : x_domain(api == Api::kDriver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API),
        x_cbid(cbid),
        x_arguments(c, api, cbid) {
    x_data.functionReturnValue = &c.result;
    x_data.functionParams = x_arguments.get();
    x_data.symbolName = c.op.kind == CUPTISIM_OP_KERNEL ? intern(c.op.name) : nullptr;
    x_data.context = handle(c.context);
    x_data.contextUid = c.context->id;
    x_data.correlationData = &x_scratch;
    x_data.correlationId = c.correlation;
    const char* name = nullptr;
    cuptiGetCallbackName(x_domain, x_cbid, &name);
    x_data.functionName = name;
    tell(CUPTI_API_ENTER);
  }
  Announced(const Announced&) = delete;
  ~Announced() { tell(CUPTI_API_EXIT); }

 private:
  void tell(CUpti_ApiCallbackSite site) {
    x_data.callbackSite = site;
    call_back(x_domain, x_cbid, &x_data);
  }
  CUpti_CallbackDomain x_domain;
  CUpti_CallbackId x_cbid;
  CallArguments x_arguments;
  uint64_t x_scratch = 0;
  CUpti_CallbackData x_data{};
};

// What the user's call returned, unless it was asked to fail.
uint32_t outcome(const Call& c) { return c.result == c.op.return_value ? uint32_t{CUDA_SUCCESS} : c.result; }

void execute(Call& c) {
  // A call that fails gives the GPU nothing to do.
  if (c.result == CUDA_SUCCESS || (!is_work(c.op) && c.op.kind != CUPTISIM_OP_GRAPH_LAUNCH)) {
    const uint32_t rc = body(c);
    if (rc != CUDA_SUCCESS) c.result = rc;
  }
}

uint32_t run_one(const cuptisim_op& op) {
  Machine& m = Machine::get();
  if (op.size != sizeof(cuptisim_op) || op.kind < CUPTISIM_OP_KERNEL ||
      op.kind > CUPTISIM_OP_GRAPH_EXEC_DESTROY)
    return CUDA_ERROR_INVALID_VALUE;
  if (op.device >= m.devices()) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = m.context(op.device, op.context);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (op.kind == CUPTISIM_OP_GRAPH_LAUNCH && needs_instantiation(op.graph_id)) {
    cuptisim_op instantiate = op;
    instantiate.kind = CUPTISIM_OP_GRAPH_INSTANTIATE;
    instantiate.flags = 0;
    instantiate.cbid = instantiate.correlation = instantiate.value = 0;
    if (const uint32_t rc = run_one(instantiate); rc != CUDA_SUCCESS) return rc;
  }
  Call c{op, context, op.stream ? op.stream : kDefaultStream, correlation_of(op)};
  c.result = op.return_value;
  if (op.flags & CUPTISIM_NO_API) {
    c.begin = op.flags & CUPTISIM_GPU_TIMES ? op.gpu_start : m.now();
    execute(c);
    return outcome(c);
  }

  const CallIds ids = ids_of(op);
  if (ids.runtime) set_runtime_context(handle(context));
  m.truth.api_calls.fetch_add(1, std::memory_order_relaxed);
  c.begin = begin_call(c);
  const bool runtime_record = ids.runtime && api_record_wanted(Api::kRuntime, ids.runtime);
  // A driver call inside a runtime call has a record of its own only where the runtime call has none.
  const bool driver_record = ids.driver && !runtime_record && api_record_wanted(Api::kDriver, ids.driver);
  auto run = [&] {
    execute(c);
    if (runtime_record || driver_record) emit_external_correlation(c.correlation);
  };
  auto run_in_driver = [&] {
    if (!ids.driver || !callback_enabled(CUPTI_CB_DOMAIN_DRIVER_API, ids.driver)) return run();
    const Announced driver(c, Api::kDriver, ids.driver);
    run();
  };
  if (ids.runtime && callback_enabled(CUPTI_CB_DOMAIN_RUNTIME_API, ids.runtime)) {
    const Announced runtime(c, Api::kRuntime, ids.runtime);
    run_in_driver();
  } else {
    run_in_driver();
  }
  const uint64_t end = end_call(c);
  sync_records(c, end);
  if (runtime_record) emit_api_record(c, Api::kRuntime, ids.runtime, end);
  if (driver_record) emit_api_record(c, Api::kDriver, ids.driver, end);
  return outcome(c);
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_EXPORT int cuptisim_run(const cuptisim_op* ops, size_t count, size_t* done) {
  size_t i = 0;
  const Inside inside;
  uint32_t rc = CUDA_SUCCESS;
  while (i < count && (rc = run_one(ops[i])) == CUDA_SUCCESS) ++i;
  if (done) *done = i;
  return static_cast<int>(rc);
}
