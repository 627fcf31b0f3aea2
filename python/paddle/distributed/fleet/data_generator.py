"""Programs that turn raw lines into samples, for the pipe_command of a data set. Nothing else may print to stdout."""
import numbers
import sys

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]


class DataGenerator:
    """Define generate_sample(line): a function that yields samples [(slot, [values]), ...]."""

    def __init__(self):
        self.batch_size_ = 32

    def set_batch(self, batch_size):
        """How many samples generate_batch gets at once."""
        self.batch_size_ = int(batch_size)

    def generate_sample(self, line):
        raise NotImplementedError(f"{type(self).__name__} must define generate_sample(line)")

    def generate_batch(self, samples):
        """May change or drop samples of a batch; by default it passes them on."""
        def passed_on():
            yield from samples
        return passed_on

    def _gen_str(self, sample):
        raise NotImplementedError("use MultiSlotDataGenerator or MultiSlotStringDataGenerator")

    def _texts(self, lines):
        batch = []
        for line in lines:
            for sample in self.generate_sample(line)():
                if sample is None:
                    continue
                batch.append(sample)
                if len(batch) == self.batch_size_:
                    yield from map(self._gen_str, self.generate_batch(batch)())
                    batch = []
        if batch:
            yield from map(self._gen_str, self.generate_batch(batch)())

    def run_from_stdin(self):
        """Reads raw lines from stdin, prints samples."""
        for text in self._texts(sys.stdin):
            sys.stdout.write(text)

    def run_from_memory(self):
        """Prints the samples of generate_sample(None), to try a generator out."""
        for text in self._texts([None]):
            sys.stdout.write(text)


def _checked(sample):
    if isinstance(sample, zip):
        sample = list(sample)
    if not isinstance(sample, (list, tuple)):
        raise ValueError(f"a sample must be a list of (slot, [values]), got {type(sample).__name__}: {sample!r:.80}")
    for item in sample:
        if not (isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[1], (list, tuple))):
            raise ValueError(f"a sample must be a list of (slot, [values]), got {item!r:.80}")
        if not item[1]:
            raise ValueError(f"slot '{item[0]}' has no values; give it one, such as a padding id")
    return sample


class MultiSlotStringDataGenerator(DataGenerator):
    """Values are strings already and are not looked at."""

    def _gen_str(self, sample):
        return " ".join(" ".join([str(len(values)), *values]) for _, values in _checked(sample)) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    """Values are numbers; all samples must have the same slots in the same order."""

    def __init__(self):
        super().__init__()
        self._slots = None

    def _gen_str(self, sample):
        sample = _checked(sample)
        names = [name for name, _ in sample]
        if self._slots is None:
            self._slots = names
        elif names != self._slots:
            raise ValueError(f"the slots of a sample are {names}, those of the samples before it {self._slots}")
        for name, values in sample:
            for value in values:
                if isinstance(value, bool) or not isinstance(value, numbers.Real):
                    raise ValueError(f"slot '{name}' holds {value!r}; values must be numbers")
        return " ".join(" ".join(map(str, [len(values), *values])) for _, values in sample) + "\n"
