#include "fleetx/train/event_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "fleetx/base/file.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::train {
namespace {

using testing::expect_error;

TEST(EventFile, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);            // the check value of CRC-32C
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
}

TEST(EventFile, HasRecordsOfLengthDataAndChecksums) {
  const testing::TempDir folder;
  EventFile events(folder.path() + "/runs/first");
  events.scalar("train/loss", 300, 0.5);
  const std::string bytes = read_file(events.path());
  size_t at = 0;
  std::vector<std::string> records;
  while (at < bytes.size()) {
    uint64_t length = 0;
    ASSERT_LE(at + 12, bytes.size());
    std::memcpy(&length, bytes.data() + at, 8);
    ASSERT_LE(at + 16 + length, bytes.size());
    records.push_back(bytes.substr(at + 12, length));
    at += 16 + length;
  }
  ASSERT_EQ(records.size(), 2u);
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  // wall_time, then step 300, then summary { value { tag, simple_value: 0.5 } }.
  EXPECT_EQ(records[1][0], 0x09);
  EXPECT_EQ(records[1].substr(9),
            std::string("\x10\xac\x02\x2a\x13\x0a\x11\x0a\x0atrain/loss\x15\x00\x00\x00\x3f", 24));
}

TEST(EventFile, SaysWhereItCannotWrite) {
  expect_error(Error::Kind::kInvalidArgument, {"cannot make the folder /dev/null/runs"},
               [] { EventFile events("/dev/null/runs"); });
}

}  // namespace
}  // namespace fleetx::train
