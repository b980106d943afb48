// Creating and removing one checkpoint's folder.
#pragma once

#include <string>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

// Creates the folder exclusively, mode 2770; its name becomes durable with the manifest. Returns
// its name. Error already_exists when it is there: names are never used twice, take another nonce.
Result<std::string> create_checkpoint_folder(FileSystem& file_system, const std::string& job_folder,
                                             const FolderName& name);

// Removes a checkpoint's folder: the manifest first, so that what is left after a crash in between
// does not count. One that is gone is fine. `name` must be a checkpoint folder's name.
Status remove_checkpoint_folder(FileSystem& file_system, const std::string& job_folder, const std::string& name);

}  // namespace rekindle
