// A file descriptor that ends with its owner. Any thread, one at a time.
#pragma once

#include <utility>

namespace rekindle {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = other.release();
    }
    return *this;
  }

  // -1: none.
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  // The caller closes it from then on.
  int release() { return std::exchange(number_, -1); }
  void reset();

 private:
  int number_ = -1;
};

}  // namespace rekindle
