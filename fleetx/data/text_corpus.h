// Documents of sentences of tokens, in memory: 4 bytes a token. From plain text, one sentence a
// line with an empty line between documents, or from JSON lines (json_text.h), one document a line.
// Immutable once made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fleetx/data/text_lines.h"
#include "fleetx/data/tokenizer.h"

namespace fleetx::data {

enum class CorpusFormat { kText, kJsonLines };
// "text", "jsonl"; another word is kInvalidArgument.
CorpusFormat corpus_format_of(std::string_view word);

struct CorpusOptions {
  std::vector<std::string> files{};
  CorpusFormat format = CorpusFormat::kText;
  std::string field = "text";                  // of JSON lines
  int64_t max_tokens = 0;                      // of a sentence; 0: any number
  BadText bad_lines = BadText::kStop;          // not UTF-8, no JSON
  BadText long_sentences = BadText::kReplace;  // cut to max_tokens
};

class TextCorpus {
 public:
  // Files without any sentence are kCorrupt.
  TextCorpus(const Tokenizer& tokenizer, const CorpusOptions& options);

  const std::string& name() const { return name_; }  // of the files, for messages
  int64_t documents() const { return static_cast<int64_t>(document_ends_.size()); }
  int64_t sentences() const { return static_cast<int64_t>(sentence_ends_.size()); }
  int64_t tokens() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t bad_lines() const { return bad_lines_; }            // left out or repaired
  int64_t long_sentences() const { return long_sentences_; }  // left out or cut

  // Sentences of document d: [first_sentence(d), first_sentence(d + 1)).
  int64_t first_sentence(int64_t d) const {
    return d == 0 ? 0 : document_ends_[static_cast<size_t>(d) - 1];
  }
  // The tokens of sentences [first, last).
  std::span<const int32_t> tokens(int64_t first, int64_t last) const {
    const int64_t begin = token_of(first);
    return {tokens_.data() + begin, static_cast<size_t>(token_of(last) - begin)};
  }
  int64_t count_tokens(int64_t first, int64_t last) const {
    return token_of(last) - token_of(first);
  }

 private:
  void read(const std::string& file, const Tokenizer& tokenizer, const CorpusOptions& options);
  void add_sentence(std::string_view text, const Tokenizer& tokenizer, const CorpusOptions& options,
                    const TextLines& lines, const std::string& file);
  void end_document();
  int64_t token_of(int64_t s) const {
    return s == 0 ? 0 : sentence_ends_[static_cast<size_t>(s) - 1];
  }

  std::string name_;
  std::vector<int32_t> tokens_;
  std::vector<int64_t> sentence_ends_;  // in tokens_
  std::vector<int64_t> document_ends_;  // in sentence_ends_
  int64_t bad_lines_ = 0, long_sentences_ = 0;
  std::string first_long_;  // file:line
};

}  // namespace fleetx::data
