#include "operator/io/stoppable_transport.h"

#include <utility>

namespace rekindle::op {
namespace {

// Stopped when one of the two is.
class EitherStop {
 public:
  EitherStop(std::stop_token one, std::stop_token other)
      : on_one_(std::move(one), Request{either_}), on_other_(std::move(other), Request{either_}) {}

  std::stop_token token() const { return either_.get_token(); }

 private:
  struct Request {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };

  std::stop_source either_;
  std::stop_callback<Request> on_one_;
  std::stop_callback<Request> on_other_;
};

}  // namespace

Result<HttpResponse> StoppableTransport::send(const HttpRequest& request, std::stop_token stop) {
  const EitherStop either(std::move(stop), stopping_.get_token());
  return inner_.send(request, either.token());
}

Result<HttpResponse> StoppableTransport::stream(const HttpRequest& request, const TransportSink& sink,
                                                std::stop_token stop) {
  const EitherStop either(std::move(stop), stopping_.get_token());
  return inner_.stream(request, sink, either.token());
}

}  // namespace rekindle::op
