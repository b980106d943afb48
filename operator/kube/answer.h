// Reads the API server's answers: an object, or an Error that says what the server said, whether
// trying again can help and when. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/http_message.h"
#include "common/base/instant.h"
#include "common/base/json_fields.h"
#include "operator/kube/object_size.h"

namespace rekindle::op {

// Larger answers are not taken; a LIST is then asked for in smaller pages. An object in etcd has
// 1.5 MiB, or 3 where somebody has raised that.
inline constexpr std::size_t kAnswerBytesMax = 8u << 20;
// Of all objects of a page: their trees cost some 100 bytes a value, and everybody who may create a
// pod decides how many there are.
inline constexpr std::size_t kPageValuesMax = 200'000;

// The metav1.Status object of a failed request. Fields that are missing stay empty; a body that is
// no Status gives its first words as the message.
struct KubeStatus {
  int code = 0;
  std::string reason;  // "NotFound", "AlreadyExists", "Expired", ...
  std::string message;
  std::vector<std::string> causes;  // "spec.tasks[0].name: Required value"
  std::optional<Duration> retry_after;
};

KubeStatus parse_kube_status(const Json& status);

// What the codes and reasons mean for us:
//   400 405 406 413 415 422 -> invalid_input
//   401 -> unauthorized        403 -> refused        404 -> not_found        410 -> gone
//   409 -> already_exists (reason AlreadyExists), else conflict (retry: look again, then try)
//   429 500 502 503 -> unavailable (retry)           408 504 -> deadline_exceeded (retry)
// Other statuses above 400 go by their hundred; a status that is no answer (1xx, 3xx) is internal.
Error to_error(const KubeStatus& status);

// The object in a successful answer (null for an empty body), or the Error. `doing` starts the
// message: "getting pod a/b".
Result<Json> read_answer(const HttpResponse& response, std::string_view doing);

// How long the server tells clients to wait: the Retry-After header (seconds; a date is not used by
// the API server and is ignored), else retryAfterSeconds in the Status. Bounded to an hour, so that
// a wild number cannot stop us for good.
std::optional<Duration> retry_after(const HttpResponse& response);

// One page of a LIST, taken apart.
struct ListPage {
  std::vector<Json> items;
  std::vector<TooLargeObject> too_large;
  std::string resource_version;
  std::string continue_token;  // empty on the last page
};

// exhausted: a smaller page can be read.
Result<ListPage> read_list_page(const HttpResponse& response, std::string_view doing);

}  // namespace rekindle::op
