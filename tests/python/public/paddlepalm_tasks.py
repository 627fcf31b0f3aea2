"""PaddlePALM trains a small ERNIE or BERT on made-up texts: paddlepalm_tasks.py TASK NETWORK."""
import json
import random
import sys

import paddlepalm as palm

task, network = sys.argv[1:]
random.seed(0)
WORDS, LETTERS = [f"w{i}" for i in range(60)], "abcdefghij"
SIZES = {"attention_probs_dropout_prob": 0.1, "hidden_act": "relu", "hidden_dropout_prob": 0.1, "hidden_size": 32,
         "initializer_range": 0.02, "max_position_embeddings": 64, "num_attention_heads": 2, "num_hidden_layers": 2,
         "type_vocab_size": 4, "sent_type_vocab_size": 4, "task_type_vocab_size": 16, "vocab_size": 75, "use_task_id": False}
LENGTH, BATCH = 32, 4


def text():
    return " ".join(random.choice(WORDS) for _ in range(8))


def table(columns, row, count=24):
    with open("data.tsv", "w") as file:
        file.write("\t".join(columns) + "\n")
        file.writelines("\t".join(row()) + "\n" for _ in range(count))
    return "data.tsv"


def tagged():
    length = random.randint(4, 9)
    return "\2".join(random.choices(LETTERS, k=length)), "\2".join(random.choices(["B-X", "I-X", "O"], k=length))


def questions():
    data = []
    for i in range(12):
        context, start = "".join(random.choices(LETTERS, k=20)), random.randint(0, 15)
        answer = {"text": context[start:start + 3], "answer_start": start}
        data.append({"title": "", "paragraphs": [{"context": context, "qas": [{"id": f"q{i}", "question": "abc", "answers": [answer]}]}]})
    json.dump({"data": data, "version": "1"}, open("data.json", "w"))
    return "data.json"


with open("vocab.txt", "w") as file:
    file.write("\n".join(["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", *WORDS, *LETTERS]) + "\n")
json.dump({"B-X": 0, "I-X": 1, "O": 2, "B-Y": 3}, open("tags.json", "w"))
label, width = (lambda: str(random.randint(0, 1))), SIZES["hidden_size"]
DATA = {"cls": lambda: table(["label", "text_a"], lambda: (label(), text())),
        "match": lambda: table(["label", "text_a", "text_b"], lambda: (label(), text(), text())),
        "pair": lambda: table(["text_a", "text_b", "text_b_neg"], lambda: (text(), text(), text())),
        "ner": lambda: table(["text_a", "label"], tagged), "mlm": lambda: table(["text_a"], lambda: (text(),)), "mrc": questions}
READERS = {"cls": lambda **k: palm.reader.ClassifyReader("vocab.txt", LENGTH, seed=1, **k),
           "match": lambda **k: palm.reader.MatchReader("vocab.txt", LENGTH, seed=1, **k),
           "pair": lambda **k: palm.reader.MatchReader("vocab.txt", LENGTH, seed=1, learning_strategy="pairwise", **k),
           "ner": lambda **k: palm.reader.SequenceLabelReader("vocab.txt", LENGTH, "tags.json", seed=1, **k),
           "mrc": lambda **k: palm.reader.MRCReader("vocab.txt", LENGTH, 16, 4, **k),
           "mlm": lambda **k: palm.reader.MaskLMReader("vocab.txt", LENGTH, **k)}
HEADS = {"cls": lambda **k: palm.head.Classify(2, width, **k), "match": lambda **k: palm.head.Match(2, width, **k),
         "pair": lambda **k: palm.head.Match(2, width, learning_strategy="pairwise", **k),
         "ner": lambda **k: palm.head.SequenceLabel(4, width, **k), "mrc": lambda **k: palm.head.MRC(16, width, **k),
         "mlm": lambda **k: palm.head.MaskLM(width, SIZES["vocab_size"], "relu", **k)}


def backbone(**options):
    body = palm.backbone.ERNIE if network == "ernie" else palm.backbone.BERT
    if task != "pair":
        return body.from_config(SIZES, **options)
    kinds = [4, 4] if network == "ernie" else [4]
    return body(width, 2, 2, 75, 64, *kinds, "relu", 0.1, 0.1, 0.02, is_pairwise=True, **options)


data, reader = DATA[task](), READERS[task]()
reader.load_data(data, BATCH, num_epochs=1)
body = backbone()
reader.register_with(body)
trainer = palm.Trainer(task)
loss = trainer.build_forward(body, HEADS[task]())
steps = reader.num_examples // BATCH
trainer.build_backward(optimizer=palm.optimizer.Adam(loss, 1e-3, palm.lr_sched.TriangularSchedualer(2, steps)), weight_decay=0.01)
trainer.fit_reader(reader)
trainer.set_saver("saved", steps)
trainer.train(print_steps=2)
if task in ("cls", "match", "ner"):
    reader = READERS[task](phase="predict")
    reader.load_data(data, BATCH)
    body = backbone(phase="predict")
    reader.register_with(body)
    trainer.build_predict_forward(body, HEADS[task](phase="predict"))
    trainer.fit_reader(reader, phase="predict")
    trainer.predict(print_steps=2, output_dir="predicted")
