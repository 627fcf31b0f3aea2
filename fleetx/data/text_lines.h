// Lines of a text file (also *.gz and *.zst), with a policy for those that cannot be used.
//
//   TextLines lines("book.txt", BadText::kSkip);
//   while (lines.next()) use(lines.line());
//   lines.bad();            // how many were left out or repaired
//
// Used by one thread. A byte order mark at the begin and "\r" at the ends of lines are left out.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fleetx/data/byte_source.h"

namespace fleetx::data {

enum class BadText {
  kStop,     // kCorrupt, with file, line and what is wrong
  kSkip,     // left out and counted
  kReplace,  // repaired and counted: bytes that are not UTF-8 become U+FFFD, what is too long is
             // cut
};
// "stop", "skip", "replace"; another word is kInvalidArgument, and `option` is for its message.
BadText bad_text_of(std::string_view word, std::string_view option);

class TextLines {
 public:
  TextLines(const std::string& path, BadText policy);
  // The same for bytes that come from elsewhere; `name` is for messages.
  TextLines(std::unique_ptr<ByteSource> source, std::string name, BadText policy);

  bool next();                                     // false: the end
  std::string_view line() const { return line_; }  // UTF-8, until the next call of next()
  int64_t number() const { return number_; }       // of the line, from 1 on

  // Says what is wrong with this line: fails, or counts it. A line that cannot be repaired is left
  // out by the caller, whether the policy is to skip or to replace.
  void bad_line(const std::string& why);
  int64_t bad() const { return bad_; }
  // One warning where there were any; for the end of a file.
  void warn() const;

 private:
  bool read_line();

  std::string name_;
  BadText policy_;
  std::unique_ptr<ByteSource> source_;
  std::string text_;            // what has been read
  size_t at_ = 0, filled_ = 0;  // the rest that is not given yet
  bool ended_ = false;
  std::string_view line_;
  std::string repaired_;
  int64_t number_ = 0, bad_ = 0;
  std::string first_bad_;
};

}  // namespace fleetx::data
