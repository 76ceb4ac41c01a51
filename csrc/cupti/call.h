// Result codes -> errors that say what happened and what to do.
#pragma once
#include <string>

#include "cupti/api.h"

namespace cuptiprof {

struct ErrorText {
  const char* what;  // what happened
  const char* hint;  // what the user can do; may be empty
};

// Our own words for the codes that users meet; empty strings for others.
ErrorText error_text(int code);
// CUPTI_ERROR_..., from our own table: the library may not be callable.
const char* result_name(int code);

// Who holds CUPTI in this process, where the library tells (CUDA 13.0); empty: nobody, or it does not tell.
std::string subscriber_name(const Api& api);

// Throws Error when rc is not CUPTI_SUCCESS.
void check(const Api& api, CUptiResult rc, const char* call, const std::string& context = {});

}  // namespace cuptiprof
