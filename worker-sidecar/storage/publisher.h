// The one step that makes a folder a checkpoint (PROTOCOL P16).
#pragma once

#include <string>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

// Checks the manifest, that every file of it is there with its size, and that no newer attempt has
// been claimed; then writes it under a temporary name, fsyncs, links it to manifest.json, fsyncs
// the folder, reads back and compares, fsyncs the job's folder. Each writer has made its file and
// the file's name durable itself. Returns the manifest's hash. When the name is taken by an equal
// manifest the answer is the same (a coordinator that was replaced may repeat it); by another:
// conflict. Error gone: a newer attempt exists.
Result<std::string> publish_manifest(FileSystem& file_system, const std::string& job_folder,
                                     const std::string& folder_name, const Manifest& manifest,
                                     const std::string& nonce);

// The manifest of a folder, decoded. not_found: not published (or, on NFS, not yet visible here:
// try again to a limit).
Result<SealedManifest> read_manifest(FileSystem& file_system, const std::string& job_folder,
                                     const std::string& folder_name);

}  // namespace rekindle
