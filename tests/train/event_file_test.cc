#include "fleetx/train/event_file.h"

#include <gtest/gtest.h>

#include <cmath>
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

std::vector<std::string> records_of(const std::string& path) {
  const std::string bytes = read_file(path);
  size_t at = 0;
  std::vector<std::string> records;
  while (at + 12 <= bytes.size()) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    records.push_back(bytes.substr(at + 12, length));
    at += 16 + length;
  }
  EXPECT_EQ(at, bytes.size());
  return records;
}

TEST(EventFile, HasRecordsOfLengthDataAndChecksums) {
  const testing::TempDir folder;
  EventFile events(folder.path() + "/runs/first");
  events.scalar("train/loss", 300, 0.5);
  const std::vector<std::string> records = records_of(events.path());
  ASSERT_EQ(records.size(), 2u);
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  // wall_time, then step 300, then summary { value { tag, simple_value: 0.5 } }.
  EXPECT_EQ(records[1][0], 0x09);
  EXPECT_EQ(records[1].substr(9),
            std::string("\x10\xac\x02\x2a\x13\x0a\x11\x0a\x0atrain/loss\x15\x00\x00\x00\x3f", 24));
}

TEST(EventFile, CountsValuesByTheirSize) {
  const testing::TempDir folder;
  EventFile events(folder.path());
  events.histogram("w", 1, std::vector<float>{-1, 0.5f, 2, 2, NAN, INFINITY});
  events.histogram("none", 1, std::vector<float>{NAN});
  const std::vector<std::string> records = records_of(events.path());
  ASSERT_EQ(records.size(), 2u);
  const std::string& event = records[1];
  const size_t tag = event.find("\x0a\x01w\x2a");
  ASSERT_NE(tag, std::string::npos);
  const char* at = event.data() + tag + 4 + 2;  // two bytes of length
  const auto number = [&](char key) {
    double value = 0;
    EXPECT_EQ(*at, key);
    std::memcpy(&value, at + 1, 8);
    at += 9;
    return value;
  };
  EXPECT_EQ(number(0x09), -1);            // the least
  EXPECT_EQ(number(0x11), 2);             // the largest
  EXPECT_EQ(number(0x19), 4);             // how many
  EXPECT_EQ(number(0x21), 3.5);           // their sum
  EXPECT_EQ(number(0x29), 1 + 0.25 + 8);  // and that of their squares
  const auto list = [&](char key) {
    EXPECT_EQ(*at, key);
    std::vector<double> values(30);
    std::memcpy(values.data(), at + 3, 240);  // two bytes of length
    at += 243;
    return values;
  };
  const std::vector<double> limits = list(0x32), counts = list(0x3a);
  EXPECT_EQ(at, event.data() + event.size());
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_NEAR(limits[i], -1 + 0.1 * static_cast<double>(i + 1), 1e-9);
    EXPECT_EQ(counts[i], i == 29 ? 2 : i == 0 || i == 15);
  }
  EXPECT_EQ(limits[29], 2);
}

TEST(EventFile, SaysWhereItCannotWrite) {
  expect_error(Error::Kind::kInvalidArgument, {"cannot make the folder /dev/null/runs"},
               [] { EventFile events("/dev/null/runs"); });
}

}  // namespace
}  // namespace fleetx::train
