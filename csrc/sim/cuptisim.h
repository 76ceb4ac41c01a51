// Control of the simulated GPU behind libcupti_sim.so.
//
// The library exports CUPTI's own C ABI (what NVIDIA's headers declare) and a few driver functions (cuInit,
// cuDriverGetVersion, cuDeviceGetCount, cuCtxSynchronize, ...), so a profiler loads it as it loads libcupti
// and libcuda. This header is the other side: what a test, the trace player or the PyTorch adapter uses to
// make the simulated machine do work. Plain C, callable through ctypes; every struct begins with its size so
// that it can grow.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cuptisim_op_kind {
  CUPTISIM_OP_KERNEL = 1,
  CUPTISIM_OP_MEMCPY = 2,
  CUPTISIM_OP_MEMCPY_PEER = 3,
  CUPTISIM_OP_MEMSET = 4,
  CUPTISIM_OP_API = 5,  // a call that gives the GPU nothing to do
  CUPTISIM_OP_SYNC_STREAM = 6,
  CUPTISIM_OP_SYNC_CONTEXT = 7,  // cudaDeviceSynchronize / cuCtxSynchronize
  CUPTISIM_OP_SYNC_EVENT = 8,
  CUPTISIM_OP_STREAM_WAIT_EVENT = 9,
  CUPTISIM_OP_EVENT_RECORD = 10,
  CUPTISIM_OP_ALLOC = 11,
  CUPTISIM_OP_FREE = 12,
  CUPTISIM_OP_STREAM_CREATE = 13,
  CUPTISIM_OP_CONTEXT_CREATE = 14,
  CUPTISIM_OP_GRAPH_BEGIN_CAPTURE =
      15,  // following ops of this stream become nodes of graph_id; value: CUstreamCaptureMode
  CUPTISIM_OP_GRAPH_END_CAPTURE = 16,
  CUPTISIM_OP_GRAPH_LAUNCH = 17,    // graph_id: the executable one
  CUPTISIM_OP_PROFILER_START = 18,  // cudaProfilerStart
  CUPTISIM_OP_PROFILER_STOP = 19,
  CUPTISIM_OP_MODULE_UNLOAD = 20,  // kernel names may from now on lie where others lay
  // value: number of the executable graph, 0: the graph's. Made before the first launch of a graph's number
  // if the script does not.
  CUPTISIM_OP_GRAPH_INSTANTIATE = 21,
  CUPTISIM_OP_STREAM_DESTROY = 22,
  CUPTISIM_OP_CONTEXT_DESTROY = 23,
  CUPTISIM_OP_MEMORY_POOL = 24,  // value: CUpti_ActivityMemoryPoolOperationType; address, bytes: the pool's
  // Graphs by hand. Numbers of graphs (graph_id) and of executable ones are the script's, each their own.
  CUPTISIM_OP_GRAPH_CREATE = 25,        // graph_id, empty; CUPTISIM_ADD_NODE fills it
  CUPTISIM_OP_GRAPH_ADD_CHILD = 26,     // graph_id gets a node that is a copy of graph `value`
  CUPTISIM_OP_GRAPH_CLONE = 27,         // graph_id: a copy of graph `value`
  CUPTISIM_OP_GRAPH_DESTROY_NODE = 28,  // of graph_id; value: its index
  CUPTISIM_OP_GRAPH_DESTROY = 29,       // executable ones live on
  CUPTISIM_OP_GRAPH_EXEC_UPDATE =
      30,  // executable graph_id does what graph `value` says; of other nodes: 910
  CUPTISIM_OP_GRAPH_EXEC_SET_NODE = 31,  // node `value` of executable graph_id gets the op's kernel and sizes
  CUPTISIM_OP_GRAPH_EXEC_DESTROY = 32,   // graph_id: the executable one
};

enum cuptisim_op_flags {
  CUPTISIM_API_TIMES = 1,   // api_start and api_end are given (run clock ns) instead of measured; the virtual
                            // clock goes to api_start, and no wait moves it: end with cuptisim_advance
  CUPTISIM_GPU_TIMES = 2,   // gpu_start and gpu_end are given instead of scheduled
  CUPTISIM_ASYNC = 4,       // copies and sets: asynchronous
  CUPTISIM_NO_API = 8,      // GPU work without a visible API call (a record whose launch was not traced)
  CUPTISIM_NO_RECORD = 16,  // scripted loss: the API call happens, the activity record never comes
  CUPTISIM_COMMUNICATES =
      32,  // kernel that waits for another GPU's (as if its name held "nccl"): it cannot be replayed
  CUPTISIM_ADD_NODE = 64,  // kernels, copies and sets: become a node of graph_id, added by hand
};

// One CUDA call. Zero means "default" everywhere: next correlation ID, calling thread, device 0, its primary
// context, the context's default stream.
typedef struct cuptisim_op {
  uint32_t size;  // sizeof(cuptisim_op)
  uint16_t kind;  // cuptisim_op_kind
  uint16_t flags;
  uint32_t domain;  // CUpti_CallbackDomain of the call the user made: runtime (2) or driver (1)
  uint32_t cbid;    // callback ID in that domain; 0: the usual one for this kind
  uint32_t thread;  // thread ID to report; 0: the calling thread's
  uint32_t correlation;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t return_value;
  uint64_t api_start, api_end;
  uint64_t gpu_start, gpu_end;
  uint64_t duration_ns;  // of the GPU work, when not CUPTISIM_GPU_TIMES
  const char* name;      // kernel name (mangled); the library keeps its own copy
  int32_t grid[3];
  int32_t block[3];
  uint32_t cluster[3];
  uint32_t registers_per_thread;
  int32_t static_shared_memory;
  int32_t dynamic_shared_memory;
  uint32_t local_memory_per_thread;
  uint32_t memory_kind;  // memset, alloc: CUpti_ActivityMemoryKind
  uint64_t bytes;        // copies, sets, allocations
  uint64_t address;      // alloc/free
  uint32_t copy_kind;    // CUpti_ActivityMemcpyKind
  uint32_t src_kind, dst_kind;
  uint32_t dst_device, dst_context;  // peer copies: destination (source is device/context)
  uint32_t value;                    // memset; memory pool: what happens to it; capture: its mode
  uint32_t event;                    // event ID
  uint32_t graph_id;       // graph to capture into, to launch, or the record's own (with explicit times)
  uint64_t graph_node_id;  // explicit node of a record
  uint32_t priority;       // stream create
  uint32_t channel;
} cuptisim_op;

typedef struct cuptisim_config {
  uint32_t size;           // sizeof(cuptisim_config)
  uint32_t cupti_version;  // 120600, 130001 (default) or 130400: record strides and which functions exist
  uint32_t num_devices;    // default 1
  uint32_t virtual_clock;  // 0: host time is CLOCK_MONOTONIC; 1: time moves only with the ops
  uint64_t seed;
  const char* chip;            // A100, H100 (default), H200, V100, B200, ...: fills the device records
  uint64_t launch_latency_ns;  // host call to start on an idle GPU; default 3000
  uint32_t api_call_ns;        // host time of a call under the virtual clock; default 2000
} cuptisim_config;

// Back to a fresh machine, once no thread is inside a call to the library. Refused with a CUDA error code:
// CUDA_ERROR_ALREADY_MAPPED while it is open, or has a CUPTI subscriber, an enabled activity kind or started
// counters; CUDA_ERROR_NOT_READY when a thread stayed inside for two seconds (or the caller is inside: in a
// callback).
int cuptisim_reset(const cuptisim_config* config);
// The machine as `config` says until cuptisim_close: shared with whoever uses it, untouched, if it is so
// already; else as cuptisim_reset.
int cuptisim_open(const cuptisim_config* config);
void cuptisim_close(void);

// Runs ops in order on the calling thread, with the callbacks and records the real library would give.
// Returns 0, or the CUresult of the first op that failed (its index in *done).
int cuptisim_run(const cuptisim_op* ops, size_t count, size_t* done);

uint64_t cuptisim_now(void);                   // the machine's own time, ns: CLOCK_MONOTONIC, or virtual
void cuptisim_advance(uint64_t ns_at);         // virtual clock: move to this time if later
void cuptisim_set_thread(uint32_t tid);        // thread ID that this thread reports; 0: its own
uint64_t cuptisim_event_time(uint32_t event);  // when the GPU passed it (or will), ns; 0: never recorded

// A gap between the numbers means nothing.
enum cuptisim_fault {
  CUPTISIM_FAULT_FAIL_CALL =
      1,  // name: CUPTI function; a: result code; b: after how many good calls; c: how many times (0: always)
  CUPTISIM_FAULT_DROP_RECORDS = 2,  // a: drop every a-th record as CUPTI does when it has no buffer (counted)
  CUPTISIM_FAULT_ZERO_TIMESTAMPS = 3,   // a: every a-th kernel gets start = end = 0
  CUPTISIM_FAULT_LATE_RECORDS = 4,      // a: hold back every a-th record until b later ones were delivered
  CUPTISIM_FAULT_SHUFFLE = 5,           // a: deliver records of a buffer in random order within windows of a
  CUPTISIM_FAULT_OTHER_SUBSCRIBER = 6,  // name: who holds CUPTI
  CUPTISIM_FAULT_NO_PRIVILEGES = 7,     // a: 1 on, 0 off: calls that need privileges return 35
  CUPTISIM_FAULT_SLOW_WORKER = 8,       // a: the delivering thread waits a ns before each completed buffer
  CUPTISIM_FAULT_COUNTERS_BUSY = 9,     // a: 1 on, 0 off: another process holds the counters (26)
  CUPTISIM_FAULT_NO_COUNTERS =
      10,  // a: why this machine gives no counters: 33 vGPU, 40 hypervisor, 41 confidential computing, 43 MIG
  CUPTISIM_FAULT_MISSING_METRIC = 11,  // name: base metric that the chip shall lack
  CUPTISIM_FAULT_DROP_RANGES = 12,     // a: every a-th range is lost
  CUPTISIM_FAULT_RANGE_LIMIT = 50,     // a: the range profiler takes at most a ranges a pass
  CUPTISIM_FAULT_SAMPLER_STUCK =
      51,  // a: every a-th look finds a sampler that gives nothing until it is restarted
  CUPTISIM_FAULT_RANGE_TIME = 110,       // a: automatic ranges last a ns longer than their kernels
  CUPTISIM_FAULT_SAMPLER_ENDLESS = 111,  // a: 1: decoding after a stop never comes to the end of the records
  CUPTISIM_FAULT_SAMPLED_UNRECORDED = 112,  // a: 1: kernels that run while samples are taken have no record
  CUPTISIM_FAULT_OTHER_CHIP = 100,          // name: product (A100) that device a is to the profiler
  CUPTISIM_FAULT_UNAVAILABLE =
      101,  // name: base metric that this device does not give, though its chip has it (MIG)
  CUPTISIM_FAULT_CLOCKS_LOCKED = 102,  // the clocks are locked by somebody else
  CUPTISIM_FAULT_OLD_DRIVER = 120,     // before r610: CUPTI is not shared, whatever is asked
  // name: CUPTI function, or "automatic range" (a kernel in one); a: real time that a call takes, ns; b: and
  // for each range that it decodes
  CUPTISIM_FAULT_CALL_TIME = 121,
  CUPTISIM_FAULT_END = 128,  // numbers from here on are refused
};
int cuptisim_inject(int fault, const char* name, uint64_t a, uint64_t b, uint64_t c);
void cuptisim_clear_faults(void);

// CUPTI reports its state (CUpti_CallbackIdState) on the calling thread; after a fatal error (1) it finalizes
// itself.
void cuptisim_report_state(uint32_t cbid, int result, const char* message);

// What really happened, for tests to compare with what a profiler reports.
typedef struct cuptisim_truth {
  uint32_t size;
  uint32_t buffers_outstanding;  // requested and not yet completed
  uint64_t api_calls;
  uint64_t kernels;  // executed
  uint64_t memcpys, memsets;
  uint64_t records_written;  // into buffers
  uint64_t kernel_records_written;
  uint64_t records_dropped;  // no buffer
  uint64_t kernel_records_dropped;
  uint64_t buffers_requested, buffers_completed;
  uint64_t callbacks;  // subscriber callbacks made
  // Counters. `kernels` counts what the program launched; executions beyond the first are here.
  uint64_t kernels_replayed;
  uint64_t bytes_saved, bytes_restored;  // memory kept around replays
  uint64_t ranges_collected;             // a range in one pass is one
  uint64_t ranges_dropped;
  uint64_t counter_configs;  // configurations loaded into the hardware
  uint64_t samples_produced;
  uint64_t samples_lost;
} cuptisim_truth;
void cuptisim_get_truth(cuptisim_truth* out);

// What the profiler was told to do with caches and clocks (CUDA 13.4).
typedef struct cuptisim_controls {
  uint32_t cache;   // CUpti_CacheControl_Mode of the range profiler that was enabled last
  uint32_t locked;  // CUpti_ClockControl_Mode of this process's lock; 0: none
  uint32_t locks, unlocks;
} cuptisim_controls;
void cuptisim_get_controls(cuptisim_controls* out);
// CUPTI writes a record of kind ENVIRONMENT now, of this CUpti_ActivityEnvironmentKind with these values (at
// most five), for whoever wants that kind; the stand-in has no readings of its own.
void cuptisim_environment(uint32_t device, uint32_t kind, const uint32_t* values, size_t count);
void cuptisim_say_controls(void);  // to stdout, for what happens after Python

// Hardware counters. Each kernel has exact values: a fixed function of its name, grid, block, registers,
// shared memory, duration and the chip, or what is given here: the sum over the whole GPU of a base metric of
// type counter ("sm__inst_executed") for one execution. What follows from it (hits of lookups) follows it
// too. kernel_name null: every kernel that has none of its own. Refused: ratios, throughputs, and what only
// time decides (elapsed cycles, gpu__time_duration). cuptisim_reset forgets them.
int cuptisim_set_counter(const char* kernel_name, const char* base_metric, double sum);
void cuptisim_clear_counters(void);
// The true value of a metric by its full name for one execution of this kernel alone.
int cuptisim_true_metric(const cuptisim_op* op, const char* metric, double* value);

#ifdef __cplusplus
}
#endif
