// A server that says more than it was asked.
#include <gtest/gtest.h>

#include "common/net/http_client.h"
#include "tests/support/scripted_server.h"

namespace rekindle {
namespace {

// Nobody could tell any more which answer belongs to which request.
TEST(HttpSurplus, AConnectionThatBroughtTwoAnswersAtOnceServesNoFurtherRequest) {
  const auto saying = [](const std::string& letter) { return "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + letter; };
  ScriptedServer server({[&](ScriptedPeer& peer) {
                           peer.receive_until("\r\n\r\n");
                           peer.send(saying("a") + saying("b"));
                           if (!peer.receive_until("\r\n\r\n").empty()) peer.send(saying("c"));
                         },
                         [&](ScriptedPeer& peer) {
                           peer.receive_until("\r\n\r\n");
                           peer.send(saying("d"));
                         }});
  HttpClient client({.host = "127.0.0.1", .port = server.port()});
  EXPECT_EQ(client.send({})->body, "a");
  EXPECT_EQ(client.send({})->body, "d") << "of a connection of its own";
}

}  // namespace
}  // namespace rekindle
