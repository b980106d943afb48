// What reading an input costs: processor time of this thread, and the most memory that is held at
// one moment. Work that grows faster than its input is a fault even where each input of a fuzzer is
// small, so a target also reads inputs of its own at the real size limit, once at its start
// (LLVMFuzzerInitialize): nested, long, and with very many small parts.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "tests/fuzz/support/fuzzing.h"

namespace rekindle {

// Under sanitizers on a busy machine; bounds are several times what was seen, far below what
// quadratic work would take.
struct CostBound {
  double microseconds_per_kib = 2000;
  double microseconds_more = 200'000;
  double bytes_per_byte = 64;
  double bytes_more = 4 << 20;
};

class HeapWatch {
 public:
  HeapWatch();
  ~HeapWatch();
  // The most that was held beyond what was held when the watch began.
  std::size_t peak_bytes() const;
};

inline double thread_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Ends the program, with a sentence, when `read` costs more than an input of so many bytes may.
template <typename Read>
void expect_cost(std::size_t input_bytes, Read read, CostBound bound = {}, std::string_view what = "this input") {
  const HeapWatch heap;
  const double began = thread_microseconds();
  read();
  const double microseconds = thread_microseconds() - began;
  const auto size = static_cast<double>(input_bytes);
  const double held = static_cast<double>(heap.peak_bytes());
  const bool slow = microseconds > size / 1024 * bound.microseconds_per_kib + bound.microseconds_more;
  const bool large = held > size * bound.bytes_per_byte + bound.bytes_more;
  if (!slow && !large) return;
  std::fprintf(stderr, "rekindle: bug: %.*s of %zu bytes took %.0f us and %.0f bytes of memory\n",
               static_cast<int>(what.size()), what.data(), input_bytes, microseconds, held);
  RK_ASSERT(!slow && !large);
}

// `part` again and again between two others, up to a size.
inline std::string repeated(std::string_view before, std::string_view part, std::string_view behind,
                            std::size_t bytes_max) {
  std::string text(before);
  while (text.size() + part.size() + behind.size() <= bytes_max) text += part;
  return text += behind;
}

// JSON documents of about `bytes`, each of another kind of size. `around` has a % where the value
// goes.
inline void for_each_large_json(std::string_view around, std::size_t bytes,
                                const std::function<void(std::string_view name, const std::string& text)>& take) {
  const std::size_t place = around.find('%');
  const std::string before(around.substr(0, place));
  const std::string behind(around.substr(place + 1));
  const auto filled = [&](std::string_view open, std::string_view part, std::string_view close) {
    return repeated(before + std::string(open), part, std::string(close) + behind, bytes);
  };
  take("a long text", filled("\"", "text ", "\""));
  take("a text of escapes", filled("\"", "\\u00e4\\n", "\""));
  take("many numbers", filled("[1", ",1", "]"));
  take("a long number", filled("1", "1", ""));
  take("a long fraction", filled("0.", "1", "e-9"));
  take("many texts", filled("[\"\"", ",\"\"", "]"));
  take("many lists", filled("[[]", ",[]", "]"));
  take("many objects", filled("[{}", ",{}", "]"));
  take("many fields", filled("{\"a\":1", ",\"a\":1", "}"));
  take("deep, again and again", filled("[0", ",[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "]"));
  take("only brackets", filled("", "[", ""));
  take("only objects", filled("", "{\"a\":", ""));
  std::string fields = before + "{";
  for (std::size_t i = 0; fields.size() + behind.size() + 24 < bytes; ++i)
    fields += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  take("many names", fields + "}" + behind);
}

}  // namespace rekindle
