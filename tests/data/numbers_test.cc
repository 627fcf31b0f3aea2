#include "fleetx/data/numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "fleetx/base/rng.h"

namespace fleetx::testing {
namespace {

std::string ended(std::string text) { return text + "\n" + std::string(data::kPastEnd, '7'); }

// The value, if the whole text is one.
template <class T>
std::optional<T> read(const std::string& text) {
  const std::string padded = ended(text);
  T value{};
  const char* end = nullptr;
  if constexpr (std::is_same_v<T, float>)
    end = data::read_float(padded.data(), value);
  else
    end = data::read_int(padded.data(), value);
  return end == padded.data() + text.size() ? std::optional(value) : std::nullopt;
}

template <class T>
std::optional<T> reference(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

void expect_same_float(const std::string& text) {
  const auto ours = read<float>(text), wanted = reference<float>(text);
  ASSERT_TRUE(ours && wanted) << text;
  EXPECT_EQ(std::bit_cast<uint32_t>(*ours), std::bit_cast<uint32_t>(*wanted)) << text;
}

TEST(Numbers, WholeNumbers) {
  for (const char* text :
       {"0", "7", "-7", "12345678", "123456789", "-1234567890123456", "12345678901234567",
        "9223372036854775807", "-9223372036854775808", "999999999999999999", "007", "-0"})
    EXPECT_EQ(read<int64_t>(text), reference<int64_t>(text)) << text;
  EXPECT_EQ(read<int64_t>("0000000000000000000000000000012"), 12);
}

TEST(Numbers, WholeNumbersBeyondInt64AreRefused) {
  for (const char* text :
       {"9223372036854775808", "-9223372036854775809", "10000000000000000000",
        "18446744073709551617", "99999999999999999999", "123456789012345678901234567890"})
    EXPECT_EQ(read<int64_t>(text), std::nullopt) << text;
}

TEST(Numbers, WhatIsNone) {
  for (const char* text : {"", "-", "x", "+1", " 1", "1.5", "1e3", "1x", "--1", "\x80"})
    EXPECT_EQ(read<int64_t>(text), std::nullopt) << text;
  for (const char* text : {"", "-", "x", "+1", ".", "-.", "1x", "1e", "1..2", "1e400", "-3.5e38"})
    EXPECT_EQ(read<float>(text), std::nullopt) << text;
}

TEST(Numbers, RandomWholeNumbers) {
  const Philox random(1, 2);
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto b = random.block(i);
    const uint64_t bits = (uint64_t{b[0]} << 32 | b[1]) >> (b[2] % 64);
    const std::string text = std::to_string(static_cast<int64_t>(bits));
    ASSERT_EQ(read<int64_t>(text), static_cast<int64_t>(bits)) << text;
  }
}

TEST(Numbers, FloatsOfManyForms) {
  for (const char* text : {"0",
                           "-0",
                           "0.0",
                           "1",
                           "0.5",
                           ".5",
                           "5.",
                           "-2.25",
                           "1e3",
                           "1E-3",
                           "1.5e+2",
                           "3.4028235e38",
                           "1.17549435e-38",
                           "16777217",
                           "16777219",
                           "0.1",
                           "0.30000000000000004",
                           "123456.789",
                           "0.6137582936584931",
                           "12345678901234567890123",
                           "0.00000000000000000000001",
                           "8388608.5",
                           "8388609.5",
                           "0.000030517578125",
                           "1e-45"})
    expect_same_float(text);
}

TEST(Numbers, FloatsThatAreTooSmallAreZero) {
  EXPECT_EQ(read<float>("1e-50"), 0.0f);
  EXPECT_EQ(read<float>("-1e-400"), 0.0f);
}

TEST(Numbers, RandomFloatsAreRoundedAsFromCharsDoes) {
  const Philox random(3, 4);
  for (uint64_t i = 0; i < 40000; ++i) {
    const auto b = random.block(i);
    // 1 to 19 digits with a point anywhere.
    std::string text = std::to_string((uint64_t{b[0]} << 32 | b[1]) >> (b[2] % 64));
    if (text.size() > 19) text.resize(19);
    text.insert(b[3] % text.size(), ".");
    if (text[0] == '.' && b[3] % 2 == 0) text.insert(0, "0");
    ASSERT_NO_FATAL_FAILURE(expect_same_float(text));
  }
}

// The hardest: what is exactly between two floats, and one digit to either side.
TEST(Numbers, MiddlesBetweenFloats) {
  const Philox random(5, 6);
  for (uint64_t i = 0; i < 5000; ++i) {
    const uint64_t odd = (random.bits(i) & 0xffffff) | 0x1000001;  // 25 bits: a middle
    for (const int64_t add : {-1, 0, 1})
      expect_same_float(std::to_string(static_cast<int64_t>(odd * 100000) + add));
  }
}

}  // namespace
}  // namespace fleetx::testing
