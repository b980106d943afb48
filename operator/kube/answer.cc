#include "operator/kube/answer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_slices.h"

namespace rekindle::op {
namespace {

constexpr std::uint64_t kRetryAfterSecondsMax = 3600;
constexpr std::size_t kQuotedBytesMax = 300;
constexpr std::size_t kListMetadataBytesMax = 64u << 10;

// The beginning of a text that is no Status (a proxy's page), fit for one line of a message.
std::string first_words(std::string_view body) {
  std::string words;
  for (const char letter : body.substr(0, kQuotedBytesMax)) {
    const bool printable = static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7f;
    words += printable ? letter : ' ';
  }
  if (body.size() > kQuotedBytesMax) words += "...";
  return words;
}

Duration bounded_seconds(std::uint64_t seconds) {
  return std::chrono::seconds(std::min(seconds, kRetryAfterSecondsMax));
}

// The text of a field where it is text; Status objects come from webhooks and proxies too, so
// nothing is taken for granted.
std::string text_at(const Json& object, const char* name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t number_at(const Json& object, const char* name) {
  if (!object.is_object()) return 0;
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

bool is_status(const Json& document) { return document.is_object() && text_at(document, "kind") == "Status"; }

KubeStatus status_of(const HttpResponse& response) {
  KubeStatus status;
  if (Result<Json> body = parse_json(response.body, "answer", kAnswerBytesMax); body && is_status(*body)) {
    status = parse_kube_status(*body);
  } else {
    status.message = first_words(response.body);
  }
  status.code = response.status;
  if (status.message.empty()) status.message = "the API server gave no reason";
  return status;
}

}  // namespace

KubeStatus parse_kube_status(const Json& document) {
  KubeStatus status;
  status.code = static_cast<int>(std::min<std::uint64_t>(number_at(document, "code"), 999));
  status.reason = text_at(document, "reason");
  status.message = text_at(document, "message");
  if (!document.is_object() || !document.contains("details")) return status;
  const Json& details = document["details"];
  if (const std::uint64_t seconds = number_at(details, "retryAfterSeconds"); seconds > 0) {
    status.retry_after = bounded_seconds(seconds);
  }
  if (details.is_object() && details.contains("causes") && details["causes"].is_array()) {
    for (const Json& cause : details["causes"]) {
      const std::string field = text_at(cause, "field");
      const std::string message = text_at(cause, "message");
      status.causes.push_back(field.empty() ? message : format("{}: {}", field, message));
    }
  }
  return status;
}

Error to_error(const KubeStatus& status) {
  Error error;
  switch (status.code) {
    case 401: error.code = ErrorCode::unauthorized; break;
    case 403: error.code = ErrorCode::refused; break;
    case 404: error.code = ErrorCode::not_found; break;
    case 408:
    case 504:
      error.code = ErrorCode::deadline_exceeded;
      error.retry = Retry::yes;
      break;
    case 409:
      if (status.reason == "AlreadyExists") {
        error.code = ErrorCode::already_exists;
      } else {
        error.code = ErrorCode::conflict;
        error.retry = Retry::yes;
      }
      break;
    case 410: error.code = ErrorCode::gone; break;
    case 429:
      error.code = ErrorCode::unavailable;
      error.retry = Retry::yes;
      break;
    default:
      if (status.code >= 500) {
        error.code = ErrorCode::unavailable;
        error.retry = status.code == 501 ? Retry::no : Retry::yes;
      } else {
        error.code = status.code >= 400 ? ErrorCode::invalid_input : ErrorCode::internal;
      }
      break;
  }
  error.message = format("the API server answered {}", status.code);
  if (!status.reason.empty()) error.message += " " + status.reason;
  if (!status.message.empty()) error.message += ": " + status.message;
  if (error.code == ErrorCode::unauthorized) {
    error.message += " (the token or certificate is missing, wrong or expired)";
  }
  return error;
}

Result<Json> read_answer(const HttpResponse& response, std::string_view doing) {
  if (response.status < 200 || response.status > 299) {
    return std::unexpected(with_context(to_error(status_of(response)), doing));
  }
  if (response.body.empty()) return Json();
  Result<Json> body = parse_json(response.body, "answer of the API server", kAnswerBytesMax);
  if (!body) return std::unexpected(with_context(body.error(), doing));
  return body;
}

std::optional<Duration> retry_after(const HttpResponse& response) {
  const std::string_view header = response.headers.value_of("Retry-After");
  if (!header.empty()) {
    std::uint64_t seconds = 0;
    const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), seconds);
    if (end == header.data() + header.size() && error != std::errc::invalid_argument) {
      return bounded_seconds(error == std::errc::result_out_of_range ? kRetryAfterSecondsMax : seconds);
    }
  }
  if (response.status < 400) return std::nullopt;
  return status_of(response).retry_after;
}

Result<ListPage> read_list_page(const HttpResponse& response, std::string_view doing) {
  if (response.status < 200 || response.status > 299) return std::unexpected(read_answer(response, doing).error());
  const std::string_view body = response.body;
  const Result<Json> metadata =
      parse_json(json_field(body, "metadata").value_or("{}"), "list metadata", kListMetadataBytesMax);
  if (!metadata) return std::unexpected(with_context(metadata.error(), doing));
  JsonFields in(*metadata, "list metadata");
  ListPage page{.resource_version = in.text("resourceVersion"), .continue_token = in.text_or("continue", "")};
  if (page.resource_version.empty()) in.refuse("resourceVersion", "must not be empty");
  if (Status status = in.finish(); !status) return std::unexpected(with_context(status.error(), doing));

  const std::string_view items = json_field(body, "items").value_or("null");
  if (items == "null") return page;  // as a Go server writes an empty list
  const std::optional<std::vector<std::string_view>> objects = json_elements(items);
  if (!objects) {
    return std::unexpected(
        with_context({ErrorCode::invalid_input, "list: items must be a whole array", Retry::no}, doing));
  }
  std::size_t values = 0;
  for (const std::string_view object : *objects) {
    const std::size_t its_values = extent_of(object).values;
    if (its_values > kObjectValuesMax) {
      page.too_large.push_back(too_large_object(object, its_values));
      continue;
    }
    values += its_values;
    if (values > kPageValuesMax) {
      return std::unexpected(with_context(
          {ErrorCode::exhausted,
           format("a page of {} objects has more than {} values", objects->size(), kPageValuesMax), Retry::no},
          doing));
    }
    Result<Json> tree = parse_json(object, "object of a list", kAnswerBytesMax);
    if (!tree) return std::unexpected(with_context(tree.error(), doing));
    page.items.push_back(*std::move(tree));
  }
  return page;
}

}  // namespace rekindle::op
