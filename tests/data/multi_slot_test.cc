#include "fleetx/data/multi_slot.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

using data::parse_multi_slot;
using data::Slot;
using data::SlotValues;

const std::vector<Slot> kSlots{{"ids", DType::kI64, -1}, {"dense", DType::kF32, 2}};

template <class T>
std::vector<T> values(const Tensor& t) {
  return {t.data<T>().begin(), t.data<T>().end()};
}

TEST(MultiSlot, ReadsValuesAndLengths) {
  const auto columns = parse_multi_slot("2 17 -4 2 0.5 1e3\n\n1 9000000000 2  1 \t2\r\n", kSlots);
  EXPECT_EQ(values<int64_t>(columns[0].values), (std::vector<int64_t>{17, -4, 9000000000}));
  EXPECT_EQ(values<int64_t>(columns[0].lengths), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(values<float>(columns[1].values), (std::vector<float>{0.5, 1000, 1, 2}));
  EXPECT_EQ(values<int64_t>(columns[1].lengths), (std::vector<int64_t>{2, 2}));
}

TEST(MultiSlot, NamesTheSlotAndShowsTheLine) {
  const auto corrupt = [](const char* line, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kCorrupt, parts, [&] { parse_multi_slot(line, kSlots); });
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
}

TEST(MultiSlot, RefusesOtherTypes) {
  expect_error(Error::Kind::kInvalidArgument, {"slot 'a' is f64"}, [] {
    parse_multi_slot("", {{"a", DType::kF64, 1}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"no slots"}, [] { parse_multi_slot("", {}); });
}

}  // namespace
}  // namespace fleetx::testing
