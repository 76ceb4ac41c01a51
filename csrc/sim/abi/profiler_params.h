// What every function of the counter API does first, with its parameter struct.
#pragma once
#include <cupti_result.h>

#include "sim/machine/faults.h"
#include "sim/machine/machine.h"

// Refuses a struct that is missing or older than its last field, then asks for scripted faults.
#define SIM_PARAMS(function, p, size)                                         \
  if (!(p) || (p)->structSize < (size)) return CUPTI_ERROR_INVALID_PARAMETER; \
  SIM_FAULTS(function)
