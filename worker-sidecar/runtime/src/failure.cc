#include "worker-sidecar/runtime/src/failure.h"

namespace rekindle::runtime {

rk_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input: return RK_ERROR_ARGUMENT;
    case ErrorCode::not_found: return RK_ERROR_STORAGE;
    case ErrorCode::already_exists: return RK_ERROR_STORAGE;
    case ErrorCode::conflict: return RK_ERROR_UNAVAILABLE;
    case ErrorCode::refused: return RK_ERROR_STORAGE;
    case ErrorCode::unauthorized: return RK_ERROR_STORAGE;
    case ErrorCode::unavailable: return RK_ERROR_UNAVAILABLE;
    case ErrorCode::deadline_exceeded: return RK_ERROR_UNAVAILABLE;
    case ErrorCode::gone: return RK_ERROR_UNAVAILABLE;
    case ErrorCode::exhausted: return RK_ERROR_STORAGE;
    case ErrorCode::corrupt: return RK_ERROR_CORRUPT;
    case ErrorCode::io: return RK_ERROR_STORAGE;
    case ErrorCode::internal: return RK_ERROR_INTERNAL;
  }
  return RK_ERROR_INTERNAL;
}

const char* name_of(rk_status status) {
  switch (status) {
    case RK_OK: return "RK_OK";
    case RK_STOP: return "RK_STOP";
    case RK_REBUILD: return "RK_REBUILD";
    case RK_ERROR_ARGUMENT: return "RK_ERROR_ARGUMENT";
    case RK_ERROR_STATE: return "RK_ERROR_STATE";
    case RK_ERROR_VERSION: return "RK_ERROR_VERSION";
    case RK_ERROR_UNAVAILABLE: return "RK_ERROR_UNAVAILABLE";
    case RK_ERROR_STORAGE: return "RK_ERROR_STORAGE";
    case RK_ERROR_CORRUPT: return "RK_ERROR_CORRUPT";
    case RK_ERROR_MISMATCH: return "RK_ERROR_MISMATCH";
    case RK_ERROR_MEMORY: return "RK_ERROR_MEMORY";
    case RK_ERROR_INTERNAL: return "RK_ERROR_INTERNAL";
  }
  return "unknown rk_status";
}

}  // namespace rekindle::runtime
