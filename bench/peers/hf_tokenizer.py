"""Tokens per second of one core by Hugging Face's tokenizers, its fastest call, in CPU time of the process.

usage: hf_tokenizer.py VOCAB FILE [SECONDS]"""
import json
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import tokenizers  # noqa: E402

AT_ONCE = 1000


def main():
    vocab, file = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 3.0
    # Its own BertWordPieceTokenizer is this, and also looks for special tokens in the text.
    tokenizer = tokenizers.BertWordPieceTokenizer(vocab, lowercase=True)._tokenizer
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)  # without offsets
    with open(file, encoding="utf-8", newline="\n") as text:
        lines = text.read().split("\n")
    best, tokens, total, begin = 0.0, 0, 0, time.process_time()
    while time.process_time() < begin + seconds:
        tokens = total = 0
        took = 0.0
        for at in range(0, len(lines), AT_ONCE):
            start = time.process_time()
            encoded = encode(lines[at:at + AT_ONCE], add_special_tokens=False)
            took += time.process_time() - start
            tokens += sum(len(e) for e in encoded)
            total += sum(sum(e.ids) for e in encoded)
        best = max(best, tokens / took)
    print(json.dumps({"tokens_per_s": best, "best_s": tokens / best, "tokens": tokens, "sum": total}))


if __name__ == "__main__":
    main()
