// What the fuzz targets once found, and other damaged or odd programs.
#include <gtest/gtest.h>

#include "fleetx/base/names.h"
#include "fleetx/ir/builder.h"
#include "fleetx/ir/proto.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/ir/verifier.h"

namespace fleetx::ir {
namespace {

Error::Kind kind_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "no error";
  return Error::Kind::kInternal;
}

TEST(damage, names_that_are_not_utf8_are_refused) {
  EXPECT_TRUE(is_utf8("plain, \u00e9, \u8bad\u7ec3, \U0001f680"));
  for (const char* bad : {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "cut \xe8\xae"})
    EXPECT_FALSE(is_utf8(bad));

  const std::string head = "program\ndata x : f32[1]\nvar y : f32[1]\n";
  EXPECT_NO_THROW(parse_text(head + "y = scale(x) {name=\"\u8bad\"}\n"));
  EXPECT_EQ(kind_of([&] { parse_text(head + "y = scale(x) {name=\"\xff\"}\n"); }),
            Error::Kind::kInvalidArgument);
  EXPECT_EQ(kind_of([&] { parse_text("program\ndata \xff : f32[1]\n"); }),
            Error::Kind::kInvalidArgument);
}

TEST(damage, odd_attribute_names_survive_both_forms) {
  Program program;
  Rewriter rw(program);
  VarInfo v;
  v.name = "a, b";
  v.is_data = true;
  v.attrs = {{"", 1}, {"x=1 {", "\"\\\n"}, {"#", Strings{"", "]"}}};
  rw.add_var(v);
  EXPECT_EQ(parse_text(to_text(program)).var("a, b"), v);
  EXPECT_EQ(parse_proto(to_proto(program)).var("a, b"), v);
}

TEST(damage, any_seed_survives_both_forms) {
  for (const uint64_t seed : {uint64_t{1}, ~uint64_t{0}, uint64_t{1} << 63}) {
    Program program;
    program.set_seed(seed);
    EXPECT_EQ(parse_text(to_text(program)).seed(), seed);
    EXPECT_EQ(parse_proto(to_proto(program)).seed(), seed);
  }
}

TEST(damage, a_cut_or_changed_message_never_crashes) {
  Program main, startup;
  Builder b(main, startup);
  const Var x = b.data("x", f32, {-1, 4});
  b.op("scale", {{"x", x}}, {{"scale", 2.0}});
  const std::string bytes = to_proto(main);
  int refused = 0;
  for (size_t cut = 0; cut < bytes.size(); ++cut)
    for (const int flip : {0, 1, 0x80}) {
      std::string damaged = bytes;
      damaged[cut] = static_cast<char>(damaged[cut] ^ flip);
      if (flip == 0) damaged.resize(cut);
      try {
        verify(parse_proto(damaged), "");
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), Error::Kind::kCorrupt) << e.what();
        ++refused;
      }
    }
  EXPECT_GT(refused, static_cast<int>(bytes.size()));
}

}  // namespace
}  // namespace fleetx::ir
