"""Networks of PaddleNLP, made small, in static programs: three steps each."""
import sys

import numpy as np
import paddle

paddle.enable_static()
import paddlenlp.transformers as T  # noqa: E402

SIZES = dict(vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
             max_position_embeddings=64)
cross_entropy = paddle.nn.functional.cross_entropy


def classification(network, body):
    return lambda ids, kinds, label: cross_entropy(network(body(**SIZES))(ids, kinds), label)


def answers(network, body):
    def loss(ids, kinds, label):
        first, last = network(body(**SIZES))(ids, kinds)
        return cross_entropy(first, label) + cross_entropy(last, label)
    return loss


def pretraining(ids, kinds, label):
    words, order = T.BertForPretraining(T.BertModel(**SIZES))(ids, kinds)
    return T.BertPretrainingCriterion(SIZES["vocab_size"])(words, order, paddle.unsqueeze(ids, -1), label, 4.0)


NETWORKS = {
    "bert_classification": classification(T.BertForSequenceClassification, T.BertModel),
    "ernie_classification": classification(T.ErnieForSequenceClassification, T.ErnieModel),
    "roberta_classification": classification(T.RobertaForSequenceClassification, T.RobertaModel),
    "bert_tokens": lambda ids, kinds, label: cross_entropy(T.BertForTokenClassification(T.BertModel(**SIZES))(ids, kinds), ids % 2),
    "bert_answers": answers(T.BertForQuestionAnswering, T.BertModel),
    "ernie_answers": answers(T.ErnieForQuestionAnswering, T.ErnieModel),
    "bert_pretraining": pretraining,
    "electra_classification": lambda ids, kinds, label: cross_entropy(T.ElectraForSequenceClassification(
        T.ElectraModel(120, 32, 32, 2, 2, 64, "gelu", 0.1, 0.1, 64, 2, 0.02, 0), 2)(ids, kinds), label),
    "gpt": lambda ids, kinds, label: T.GPTPretrainingCriterion()(
        T.GPTForPretraining(T.GPTModel(**SIZES))(ids), ids, paddle.ones_like(paddle.cast(ids, "float32"))),
    "transformer": lambda ids, kinds, label: cross_entropy(
        T.TransformerModel(120, 120, 64, 2, 2, 32, 64, 0.1, False)(ids, kinds), paddle.unsqueeze(ids, -1)),
}
for name, build in NETWORKS.items():
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            inputs = [paddle.static.data(n, [-1, w], "int64") for n, w in (("ids", -1), ("kinds", -1), ("label", 1))]
            loss = paddle.mean(build(*inputs))
            paddle.optimizer.AdamW(1e-3, weight_decay=0.01).minimize(loss)
        exe = paddle.static.Executor()
        exe.run(startup)
        feed = {"ids": np.random.randint(1, 100, (4, 16)), "kinds": np.zeros((4, 16), "int64"), "label": np.random.randint(0, 2, (4, 1))}
        for _ in range(3):
            assert np.isfinite(exe.run(main, feed=feed, fetch_list=[loss])[0]).all(), "the loss is not finite"
        print("RUNS", name, flush=True)
    except BaseException as error:
        print("STOPS", name, type(error).__name__ + ":", str(error).replace("\n", " ")[:200], flush=True)
sys.stdout.flush()
