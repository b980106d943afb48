// The programs that main containers need, put on the shared volume before the socket answers.
#pragma once

#include <string>

#include "common/base/error.h"

namespace rekindle::sidecar {

// Copies rekindle-hook, rekindle and librekindle.so from `from` to `to`, mode 0755, each whole or
// not at all (a container that is restarted may be running one). A missing folder or program is
// named in the error.
Status fill_bin_folder(const std::string& from, const std::string& to);

// Where the programs of this installation lie: /usr/lib/rekindle, else beside this executable (and
// ../lib of it for the library).
std::string installed_programs();

}  // namespace rekindle::sidecar
