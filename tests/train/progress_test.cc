#include "fleetx/train/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <thread>

namespace fleetx::train {
namespace {

Status half_way() {
  return {.epoch = 2,
          .epochs = 5,
          .step = 469,
          .steps = 938,
          .loss = 0.51234,
          .accuracy = 0.8125,
          .rate = 12345.6,
          .seconds_left = 67.4};
}

TEST(Progress, ALineTellsEverything) {
  EXPECT_EQ(to_line(half_way(), Bar::kYes),
            "epoch 2/5 [==========>         ] 469/938  loss 0.5123  acc 81.25 %  12,346 images/s  "
            "ETA 1:07");
  EXPECT_EQ(to_line({.epoch = 1, .epochs = 1, .step = 7, .steps = 1000, .loss = 2}, Bar::kNo),
            "epoch 1/1  step    7/1000  loss 2.0000");
}

TEST(Progress, Clock) {
  EXPECT_EQ(to_clock(0), "0:00");
  EXPECT_EQ(to_clock(59.6), "1:00");
  EXPECT_EQ(to_clock(3723), "1:02:03");
  EXPECT_EQ(to_clock(-5), "0:00");
}

TEST(Progress, Means) {
  Mean mean;
  EXPECT_TRUE(std::isnan(mean.value()));
  mean.add(1, 3);
  mean.add(5, 1);
  EXPECT_DOUBLE_EQ(mean.value(), 2);
}

TEST(Progress, ATerminalIsRedrawnAtMostTenTimesASecond) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(master, 0);
  ASSERT_EQ(grantpt(master), 0);
  ASSERT_EQ(unlockpt(master), 0);
  std::FILE* terminal = std::fopen(ptsname(master), "w");
  ASSERT_NE(terminal, nullptr);
  {
    Progress progress(terminal);
    EXPECT_TRUE(progress.live());
    for (int i = 0; i < 1000; ++i) progress.show(half_way());
    progress.say("done");
  }
  std::fclose(terminal);
  std::string text;
  char piece[4096];  // what was written may arrive in several
  for (ssize_t got; (got = read(master, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<size_t>(got));
  close(master);
  const size_t first = text.find("epoch 2/5");
  ASSERT_NE(first, std::string::npos);
  EXPECT_LE(text.size(), 400u) << "drawn once or twice";
  EXPECT_NE(text.find("\r\033[Kdone"), std::string::npos) << "the line makes way";
}

}  // namespace
}  // namespace fleetx::train
