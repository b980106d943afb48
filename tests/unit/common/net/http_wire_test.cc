#include "common/net/http_wire.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

TEST(RequestHead, IsWrittenByteForByte) {
  const HttpRequest request{.method = "PATCH",
                            .path = "/api/v1/pods",
                            .query = {{"force", "true"}},
                            .headers = {{"Accept", "application/json"}},
                            .body = "{}"};
  EXPECT_EQ(encode_request_head(request, "10.0.0.1:6443"),
            "PATCH /api/v1/pods?force=true HTTP/1.1\r\nHost: 10.0.0.1:6443\r\nAccept: application/json\r\n"
            "Content-Length: 2\r\n\r\n");
}

TEST(RequestHead, AGetAnnouncesNoBody) { EXPECT_EQ(encode_request_head({}, "h"), "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); }

TEST(RequestHead, RefusesWhatWouldBreakTheFraming) {
  EXPECT_FALSE(encode_request_head({.method = "GET /"}, "h"));
  EXPECT_FALSE(encode_request_head({.path = "/a b"}, "h"));
  EXPECT_FALSE(encode_request_head({.path = "no-slash"}, "h"));
  EXPECT_FALSE(encode_request_head({.path = "/a\r\nX: y"}, "h"));
  EXPECT_FALSE(encode_request_head({.headers = {{"X", "a\r\nY: b"}}}, "h"));
  EXPECT_FALSE(encode_request_head({.headers = {{"X\n", "a"}}}, "h"));
  EXPECT_FALSE(encode_request_head({.headers = {{"content-length", "5"}}}, "h"));
  EXPECT_FALSE(encode_request_head({.headers = {{"Transfer-Encoding", "chunked"}}}, "h"));
}

TEST(RequestHead, IsReadAsItWasWritten) {
  const Result<HttpRequest> request =
      parse_request_head("POST /v1/sync?a=b%20c HTTP/1.1\r\nHost: h\r\nX-A:  spaced \r\n\r\n");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->path, "/v1/sync");
  EXPECT_EQ(request->query, (HttpQuery{{"a", "b c"}}));
  EXPECT_EQ(request->headers.value_of("x-a"), "spaced");
}

class BadRequestHead : public testing::TestWithParam<const char*> {};

TEST_P(BadRequestHead, IsRefused) { EXPECT_FALSE(parse_request_head(GetParam())); }

INSTANTIATE_TEST_SUITE_P(
    All, BadRequestHead,
    testing::Values("", "\r\n", "GET / HTTP/1.1\n\n", "GET / HTTP/1.1\r\nHost: h\n\r\n", "GET /\r\nHost: h\r\n\r\n",
                    "GET / HTTP/1.0\r\nHost: h\r\n\r\n", "GET / HTTP/2.0\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
                    "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /# HTTP/1.1\r\nHost: h\r\n\r\n",
                    "GET /?a=%zz HTTP/1.1\r\nHost: h\r\n\r\n", "G@T / HTTP/1.1\r\nHost: h\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost : h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost: h\r\nnocolon\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost: h\r\n: empty\r\n\r\n", "GET /\x80 HTTP/1.1\r\nHost: h\r\n\r\n",
                    "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"));

TEST(ResponseHead, IsRead) {
  const Result<HttpResponse> response = parse_response_head("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n\r\n");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 429);
  EXPECT_EQ(response->headers.value_of("retry-after"), "1");
  EXPECT_TRUE(parse_response_head("HTTP/1.1 200\r\n\r\n"));
}

TEST(ResponseHead, OfAnOldServerDoesNotKeepTheConnection) {
  EXPECT_TRUE(keeps_open(parse_response_head("HTTP/1.1 200 OK\r\n\r\n")->headers));
  EXPECT_FALSE(keeps_open(parse_response_head("HTTP/1.0 200 OK\r\n\r\n")->headers));
  EXPECT_FALSE(keeps_open(parse_response_head("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n\r\n")->headers));
}

TEST(ResponseHead, ThatIsNoneIsRefused) {
  for (const char* head : {"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/2 200\r\n\r\n", "200 OK\r\n\r\n",
                           "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1 -20 OK\r\n\r\n", "HTTP/1.1 200 OK\n\n"}) {
    EXPECT_FALSE(parse_response_head(head)) << head;
  }
}

TEST(ResponseHead, IsWrittenWithoutWhatAHandlerMustNotSay) {
  const HttpResponse response{.status = 200,
                              .headers = {{"Content-Type", "text/plain"}, {"X", "a\r\nY: b"}, {"Content-Length", "9"}},
                              .body = "hi"};
  EXPECT_EQ(encode_response_head(response, true),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(encode_response_head({.status = 503}, false),
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

Result<BodyFraming> framing(HttpHeaders headers) { return framing_of_request({.headers = std::move(headers)}); }

TEST(Framing, OfARequestIsWhatItAnnounces) {
  EXPECT_EQ(framing({}), BodyFraming{});
  EXPECT_EQ(framing({{"Content-Length", "0"}}), BodyFraming{});
  EXPECT_EQ(framing({{"Content-Length", "12"}}), (BodyFraming{BodyFraming::Kind::length, 12}));
  EXPECT_EQ(framing({{"Content-Length", "12"}, {"content-length", "12"}}),
            (BodyFraming{BodyFraming::Kind::length, 12}));
  EXPECT_EQ(framing({{"Transfer-Encoding", "Chunked"}}), (BodyFraming{BodyFraming::Kind::chunked, 0}));
}

TEST(Framing, ThatCanBeReadInTwoWaysIsRefused) {
  EXPECT_FALSE(framing({{"Content-Length", "1"}, {"Content-Length", "2"}}));
  EXPECT_FALSE(framing({{"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}}));
  EXPECT_FALSE(framing({{"Transfer-Encoding", "gzip, chunked"}}));
  EXPECT_FALSE(framing({{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "identity"}}));
  for (const char* length : {"-1", "+1", "0x1", "1 2", "", "1,1", "99999999999999999999999", "1e3"}) {
    EXPECT_FALSE(framing({{"Content-Length", length}})) << length;
  }
}

TEST(Framing, OfAResponseDependsOnTheQuestion) {
  const HttpResponse with_length{.status = 200, .headers = {{"Content-Length", "5"}}};
  EXPECT_EQ(framing_of_response("HEAD", with_length), BodyFraming{});
  EXPECT_EQ(framing_of_response("GET", with_length), (BodyFraming{BodyFraming::Kind::length, 5}));
  EXPECT_EQ(framing_of_response("GET", {.status = 204}), BodyFraming{});
  EXPECT_EQ(framing_of_response("GET", {.status = 200}), (BodyFraming{BodyFraming::Kind::until_close, 0}));
}

TEST(ChunkedDecoder, GivesTheSameBodyWhereverTheBytesAreCut) {
  const std::string stream = "4;ext=1\r\nWiki\r\n5\r\npedia\r\nE\r\n in\r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\nNEXT";
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    ChunkedDecoder decoder;
    std::string body;
    const Result<std::size_t> first = decoder.feed(std::string_view(stream).substr(0, cut), body);
    ASSERT_TRUE(first) << cut;
    std::size_t used = *first;
    if (!decoder.done()) {
      ASSERT_EQ(used, cut);
      const Result<std::size_t> second = decoder.feed(std::string_view(stream).substr(cut), body);
      ASSERT_TRUE(second) << cut;
      used += *second;
    }
    ASSERT_EQ(body, "Wikipedia in\r\n\r\nchunks.");
    ASSERT_TRUE(decoder.done());
    ASSERT_EQ(stream.substr(used), "NEXT");
  }
}

TEST(ChunkedDecoder, RefusesWhatIsNoChunk) {
  for (const char* stream : {"-2\r\nab\r\n", "g\r\n", "\r\n", "0x4\r\nWiki\r\n", "4\nWiki\r\n", "4\r\nWikiX\r\n",
                             "4\r\nWiki\n5\r\n", "123456789\r\n", " \r\n", "+4\r\nWiki\r\n"}) {
    ChunkedDecoder decoder;
    std::string body;
    EXPECT_FALSE(decoder.feed(stream, body)) << stream;
  }
}

TEST(ChunkedDecoder, BoundsItsLines) {
  ChunkedDecoder size_line;
  std::string body;
  EXPECT_FALSE(size_line.feed("4;" + std::string(5000, 'x'), body));
  ChunkedDecoder trailers;
  ASSERT_TRUE(trailers.feed("0\r\n", body));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "Name: a longer value than one would think\r\n";
  EXPECT_FALSE(trailers.feed(many, body));
}

}  // namespace
}  // namespace rekindle
