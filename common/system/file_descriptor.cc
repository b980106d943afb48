#include "common/system/file_descriptor.h"

#include <unistd.h>

namespace rekindle {

void FileDescriptor::reset() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

}  // namespace rekindle
