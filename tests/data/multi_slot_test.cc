#include "fleetx/data/multi_slot.h"

#include <gtest/gtest.h>

#include <sstream>

#include "fleetx/base/rng.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

using data::multi_slot_format;
using data::Samples;
using data::Slot;
using data::SlotValues;

const std::vector<Slot> kSlots{{"ids", DType::kI64, -1}, {"dense", DType::kF32, 2}};

std::vector<SlotValues> parse(std::string_view text) {
  return to_tensors(parse_lines(text, *multi_slot_format(kSlots), "part-0"), kSlots);
}

template <class T>
std::vector<T> values(const Tensor& t) {
  return {t.data<T>().begin(), t.data<T>().end()};
}

TEST(MultiSlot, ReadsValuesAndLengths) {
  const auto columns = parse("2 17 -4 2 0.5 1e3\n\n 1 9000000000 2  1 \t2\r\n");
  EXPECT_EQ(values<int64_t>(columns[0].values), (std::vector<int64_t>{17, -4, 9000000000}));
  EXPECT_EQ(values<int64_t>(columns[0].lengths), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(values<float>(columns[1].values), (std::vector<float>{0.5, 1000, 1, 2}));
  EXPECT_FALSE(columns[1].lengths.defined());
}

// Against a stream that reads one word after the other.
TEST(MultiSlot, EqualsAPlainReader) {
  const Philox random(7, 1);
  std::ostringstream text;
  text.precision(9);
  for (uint64_t line = 0; line < 500; ++line) {
    const auto b = random.block(line);
    const uint32_t n = 1 + b[0] % 2000 / (1 + b[1] % 2000);  // mostly few, sometimes many
    text << n;
    for (uint32_t i = 0; i < n; ++i)
      text << " " << static_cast<int64_t>(mix(line, i) >> (i % 60)) * (i % 3 == 0 ? -1 : 1);
    text << " 2 " << random.normal(2 * line) << " " << random.normal(2 * line + 1) * 1e-6 << "\n";
  }
  std::vector<int64_t> ids, lengths;
  std::vector<float> dense;
  std::istringstream in(text.str());
  for (int64_t n = 0, two = 0; in >> n;) {
    lengths.push_back(n);
    ids.resize(ids.size() + static_cast<size_t>(n));
    for (auto id = ids.end() - n; id != ids.end(); ++id) in >> *id;
    in >> two;
    dense.resize(dense.size() + 2);
    in >> *(dense.end() - 2) >> dense.back();
  }
  const auto columns = parse(text.str());
  EXPECT_EQ(values<int64_t>(columns[0].values), ids);
  EXPECT_EQ(values<int64_t>(columns[0].lengths), lengths);
  EXPECT_EQ(values<float>(columns[1].values), dense);
}

TEST(MultiSlot, NamesPlaceAndSlotAndShowsTheLine) {
  const auto corrupt = [](const std::string& line, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kCorrupt, parts, [&] { parse("1 1 2 1 2\n\n" + line); });
    expect_error(Error::Kind::kCorrupt, {"part-0:3: sample '"},
                 [&] { parse("1 1 2 1 2\n\n" + line + "\r\n1 1 2 1 2\n"); });
  };
  corrupt("1 5 3 1 2 3", {"sample '1 5 3 1 2 3'", "slot 'dense'", "has 3 values, expected 2"});
  corrupt("1 x 2 1 2", {"slot 'ids'", "'x' is not a whole number"});
  corrupt("1 1.5 2 1 2", {"slot 'ids'", "'1.5' is not a whole number"});
  corrupt("3 1 2", {"slot 'ids'", "the line ends where a whole number is expected"});
  corrupt("1 5", {"slot 'dense'", "the line ends where a number of values is expected"});
  corrupt("0 2 1 2", {"slot 'ids'", "has 0 values; a slot has at least one"});
  corrupt("-1 2 1 2", {"slot 'ids'", "has -1 values"});
  corrupt("1 5 2 1 2 7", {"last of 2", "the line goes on"});
  corrupt("99999999999999999999 1", {"slot 'ids'", "is not a number of values"});
  corrupt("1 9223372036854775808 2 1 2",
          {"'9223372036854775808' is not a whole number (it does not fit 64 bits)"});
  corrupt("1 7 2 1 1e40", {"slot 'dense'", "'1e40' is not a number"});
  corrupt("1 7 2 1 " + std::string(1, '\x80'), {"'?' is not a number"});
}

// A number of values that the line only claims asks for no memory.
TEST(MultiSlot, HugeCounts) {
  for (const char* line : {"9223372036854775807 1", "1000000000000 1 2 3", "4294967297 5"})
    expect_error(Error::Kind::kCorrupt, {"the line ends where a whole number is expected"},
                 [&] { parse(line); });
}

TEST(MultiSlot, RefusesOtherSlots) {
  expect_error(Error::Kind::kInvalidArgument, {"slot 'a' is f64"}, [] {
    multi_slot_format({{"a", DType::kF64, 1}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"no slots"}, [] { multi_slot_format({}); });
  expect_error(Error::Kind::kInvalidArgument, {"slot 'a' is given twice"}, [] {
    multi_slot_format({{"a", DType::kI64, 1}, {"a", DType::kI64, 1}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"slot 'a' has 0 values"}, [] {
    multi_slot_format({{"a", DType::kI64, 0}});
  });
}

TEST(MultiSlot, SlotsAsText) {
  EXPECT_EQ(data::parse_slots("dense:float32:13, ids:int64"),
            (std::vector<Slot>{{"dense", DType::kF32, 13}, {"ids", DType::kI64, -1}}));
  EXPECT_TRUE(contains(error_of([] { data::parse_slots("a:int64:x"); }), "'x' is not a width"));
  EXPECT_TRUE(contains(error_of([] { data::parse_slots("a:int"); }), "no type 'int'"));
  EXPECT_TRUE(contains(error_of([] { data::parse_slots("a"); }), "expected name:dtype:width"));
  EXPECT_TRUE(contains(error_of([] { data::parse_slots(""); }), "no slots"));
}

}  // namespace
}  // namespace fleetx::testing
