"""Word2vec: skip-gram with negative sampling."""
import os
from typing import Dict, List, Optional, Sequence, Union

import numpy
import paddle
from fleetx.applications.parameters import Parameters
from fleetx.dataset.skip_gram import SkipGramLoader, load_dataset
from paddle import static
from paddle._graph import switch_main_program, switch_startup_program
from paddle._native import native


class Word2vec(Parameters):
    """A word's vector shall tell its neighbours (true_label) from words that were drawn at random (neg_label).

    inputs -- input_word [N, 1], true_label [N, 1], neg_label [N, neg_num]; loss -- per pair; target -- {}
    main_prog, startup_prog; checkpoints -- none: there are no layers
    """

    _family = "click"

    def __init__(self, dict_size: int = 354051, embedding_size: int = 300, neg_num: int = 5, is_distributed: bool = False):
        for name, value in (("dict_size", dict_size), ("embedding_size", embedding_size), ("neg_num", neg_num)):
            if int(value) < 1:
                raise native.InvalidArgumentError(f"Word2vec: {name} must be above 0, got {value}")
        paddle.enable_static()
        self.dict_size, self.neg_num = int(dict_size), int(neg_num)
        self.main_prog, self.startup_prog = static.Program(), static.Program()
        switch_main_program(self.main_prog)
        switch_startup_program(self.startup_prog)
        word = static.data("input_word", [None, 1], "int64")
        near = static.data("true_label", [None, 1], "int64")
        other = static.data("neg_label", [None, neg_num], "int64")
        self.inputs = [word, near, other]

        def look_up(ids, table, width, initializer):
            return static.nn.embedding(ids, [dict_size, width], is_sparse=True, is_distributed=is_distributed,
                                       param_attr=paddle.ParamAttr(name=table, initializer=initializer))

        spread, zero = 0.5 / embedding_size, paddle.nn.initializer.Constant(0.0)
        self.vectors = look_up(word, "emb", embedding_size, paddle.nn.initializer.Uniform(-spread, spread))  # [N, 1, width]

        def losses(ids, width, is_near):
            scores = paddle.sum(self.vectors * look_up(ids, "emb_w", embedding_size, zero), axis=2)
            logits = scores + paddle.reshape(look_up(ids, "emb_b", 1, zero), [-1, width])
            answer = paddle.full_like(logits, float(is_near))
            return paddle.nn.functional.binary_cross_entropy_with_logits(logits, answer, reduction="none")

        self.loss = paddle.mean(paddle.sum(losses(near, 1, True), axis=1) + paddle.sum(losses(other, neg_num, False), axis=1))
        self.target: Dict[str, static.Variable] = {}
        self.checkpoints: List[str] = []
        self._test = None

    def _outputs(self):
        return [self.vectors]

    def vectors_of(self, exe: static.Executor, words: Sequence[int]) -> numpy.ndarray:
        """[len(words), embedding_size]: what these ids have learned so far; in a job with servers, what these have."""
        if self._test is None:
            self._test = self.main_prog.clone(for_test=True)
        # Servers answer all lookups of a program at once, so it wants all of its ids.
        feed = {v.name: numpy.zeros([len(words), v.shape[1]], "int64") for v in self.inputs}
        feed["input_word"][:, 0] = words
        found, = exe.run(self._test, feed=feed, fetch_list=[self.vectors.name])
        return found.reshape(len(words), -1)

    # ---- data ----
    def load_dataset_from_file(self, dict_path: Union[str, os.PathLike], file_list: Sequence[str], nce_num: Optional[int] = None,
                               window_size: int = 5, batch_size: int = 100, thread_num: int = 1, seed: int = 0):
        """A QueueDataset for CPUDatasetTrainer. `dict_path`: lines `word count`, the n-th is id n; files: lines of ids.
        Of every word and each word up to `window_size` away (a smaller window is drawn for every word) it makes a pair, with
        `nce_num` words drawn by count^0.75. nce_num must be the model's neg_num, its default."""
        return load_dataset(self.inputs, dict_path, file_list, self._negatives(nce_num), window_size, batch_size, thread_num,
                            seed)

    def load_reader_from_file(self, dict_path: Union[str, os.PathLike], file_list: Sequence[str], nce_num: Optional[int] = None,
                              window_size: int = 5, batch_size: int = 1000, seed: int = 0) -> SkipGramLoader:
        """The same as feeds, for CPUTrainer and Executor.run."""
        return SkipGramLoader([v.name for v in self.inputs], dict_path, file_list, self._negatives(nce_num), window_size,
                              batch_size, seed)

    def _negatives(self, nce_num):
        if nce_num is not None and nce_num != self.neg_num:
            raise native.InvalidArgumentError(f"nce_num is {nce_num}; this Word2vec was made with neg_num={self.neg_num}")
        return self.neg_num
