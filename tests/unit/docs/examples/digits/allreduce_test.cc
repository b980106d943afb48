#include "docs/examples/digits/allreduce.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace digits {
namespace {

std::string free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  EXPECT_EQ(bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(getsockname(probe, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  close(probe);
  return std::to_string(ntohs(address.sin_port));
}

MeetingPlace place(int rank, int world_size, const std::string& port) {
  return {.rank = rank, .world_size = world_size, .master_host = "127.0.0.1", .master_port = port};
}

TEST(AllReduce, AddsInRankOrderSoThatAllRanksHoldTheSameBytes) {
  // In float32 these sums depend on the order: (1e8 + 1) + -1e8 is 0, (1e8 + -1e8) + 1 is 1.
  const std::vector<float> parts = {1e8F, 1.0F, -1e8F, 0.25F};
  const std::string port = free_port();
  std::vector<float> results(parts.size(), -1.0F);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.emplace_back([&, rank] {
        AllReduce ring(place(rank, 4, port), 1);
        std::vector<float> value = {parts[rank]};
        if (ring.sum(value, 1)) results[rank] = value[0];
      });
    }
  }
  const float expected = ((parts[0] + parts[1]) + parts[2]) + parts[3];
  EXPECT_EQ(results, std::vector<float>(4, expected));
}

TEST(AllReduce, OneRankNeedsNobody) {
  AllReduce ring(place(0, 1, "1"), 1);
  std::vector<float> value = {3.0F};
  EXPECT_TRUE(ring.sum(value, 1));
  EXPECT_EQ(value[0], 3.0F);
}

TEST(AllReduce, RankThatLeavesFailsTheNextStepOfTheOthersOnly) {
  const std::string port = free_port();
  std::vector<std::vector<bool>> outcomes(3);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.emplace_back([&, rank] {
        AllReduce ring(place(rank, 3, port), 1);
        const std::uint64_t steps = rank == 2 ? 1 : 2;  // rank 2 is gone after the first
        for (std::uint64_t step = 1; step <= steps; ++step) {
          std::vector<float> value(50'000, 1.0F);
          const bool good = ring.sum(value, step).has_value();
          outcomes[rank].push_back(good);
          if (!good) break;
        }
      });
    }
  }
  EXPECT_EQ(outcomes[0], (std::vector<bool>{true, false}));
  EXPECT_EQ(outcomes[1], (std::vector<bool>{true, false}));
  EXPECT_EQ(outcomes[2], (std::vector<bool>{true}));
}

TEST(AllReduce, RankOfAnotherStepIsNoticed) {
  const std::string port = free_port();
  Status master;
  {
    std::jthread other([&] {
      AllReduce ring(place(1, 2, port), 1);
      std::vector<float> value = {1.0F};
      (void)ring.sum(value, 8);
    });
    AllReduce ring(place(0, 2, port), 1);
    std::vector<float> value = {1.0F};
    master = ring.sum(value, 7);
  }
  ASSERT_FALSE(master);
  EXPECT_NE(master.error().find("step 8"), std::string::npos) << master.error();
}

TEST(AllReduce, RankOfAnEarlierAttemptIsTurnedAway) {
  const std::string port = free_port();
  Status old_rank;
  Status master;
  Status new_rank;
  {
    std::jthread old_thread([&] {
      MeetingPlace where = place(1, 2, port);
      where.connect_patience = std::chrono::seconds(1);
      AllReduce ring(where, 1);
      std::vector<float> value = {100.0F};
      old_rank = ring.sum(value, 5);
    });
    std::jthread new_thread([&] {
      AllReduce ring(place(1, 2, port), 2);
      std::vector<float> value = {2.0F};
      new_rank = ring.sum(value, 5);
    });
    AllReduce ring(place(0, 2, port), 2);
    std::vector<float> value = {1.0F};
    master = ring.sum(value, 5);
    EXPECT_EQ(value[0], 3.0F);
  }
  EXPECT_TRUE(master) << master.error();
  EXPECT_TRUE(new_rank) << new_rank.error();
  EXPECT_FALSE(old_rank);
}

}  // namespace
}  // namespace digits
