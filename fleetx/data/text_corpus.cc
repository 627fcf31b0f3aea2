#include "fleetx/data/text_corpus.h"

#include "fleetx/base/error.h"
#include "fleetx/base/log.h"
#include "fleetx/base/names.h"
#include "fleetx/data/json_text.h"

namespace fleetx::data {

CorpusFormat corpus_format_of(std::string_view word) {
  check_arg(word == "text" || word == "jsonl", "format is '", word, "'; known: text, jsonl");
  return word == "text" ? CorpusFormat::kText : CorpusFormat::kJsonLines;
}

TextCorpus::TextCorpus(const Tokenizer& tokenizer, const CorpusOptions& options) {
  check_arg(!options.files.empty(), "a corpus needs at least one file");
  name_ = join(options.files, ", ");
  for (const std::string& file : options.files) read(file, tokenizer, options);
  if (long_sentences_ > 0 && options.long_sentences == BadText::kSkip)
    log::warning("text", long_sentences_, " sentences of more than ", options.max_tokens,
                 " tokens left out; the first: ", first_long_);
  check_file(!tokens_.empty(), name_, ": no sentences");
  tokens_.shrink_to_fit();
}

void TextCorpus::read(const std::string& file, const Tokenizer& tokenizer,
                      const CorpusOptions& options) {
  TextLines lines(file, options.bad_lines);
  while (lines.next()) {
    if (options.format == CorpusFormat::kText) {
      if (lines.line().find_first_not_of(" \t") == std::string_view::npos)
        end_document();
      else
        add_sentence(lines.line(), tokenizer, options, lines, file);
      continue;
    }
    if (lines.line().empty()) continue;
    std::vector<std::string> sentences;
    try {
      sentences = sentences_of_json(lines.line(), options.field);
    } catch (const Error& e) {
      lines.bad_line(e.what());
    }
    for (const std::string& sentence : sentences)
      add_sentence(sentence, tokenizer, options, lines, file);
    end_document();
  }
  end_document();
  lines.warn();
  bad_lines_ += lines.bad();
}

void TextCorpus::add_sentence(std::string_view text, const Tokenizer& tokenizer,
                              const CorpusOptions& options, const TextLines& lines,
                              const std::string& file) {
  const size_t before = tokens_.size();
  tokenizer.encode(text, tokens_);
  const size_t count = tokens_.size() - before;
  if (options.max_tokens > 0 && count > static_cast<size_t>(options.max_tokens)) {
    check_file(options.long_sentences != BadText::kStop, file, ":", lines.number(),
               ": a sentence of ", count, " tokens; at most ", options.max_tokens,
               " (long_sentences=skip leaves such out, long_sentences=replace cuts them)");
    if (long_sentences_++ == 0) first_long_ = str(file, ":", lines.number());
    const bool cut = options.long_sentences == BadText::kReplace;
    tokens_.resize(before + static_cast<size_t>(cut ? options.max_tokens : 0));
  }
  if (tokens_.size() > before) sentence_ends_.push_back(tokens());
}

void TextCorpus::end_document() {
  if (sentences() > first_sentence(documents())) document_ends_.push_back(sentences());
}

}  // namespace fleetx::data
