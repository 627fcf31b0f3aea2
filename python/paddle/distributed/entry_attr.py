"""When a row of a table on the parameter servers is made. Until then it is pulled as zeros and not trained."""


class EntryAttr:
    def admission(self):
        """For the servers: {setting: value}."""
        raise NotImplementedError


class CountFilterEntry(EntryAttr):
    """At the id's `count_filter`-th occurrence."""

    def __init__(self, count_filter):
        if not isinstance(count_filter, int):
            raise ValueError(f"CountFilterEntry: count_filter must be a whole number, got {count_filter!r}")
        if count_filter < 0:
            raise ValueError(f"CountFilterEntry: count_filter must not be negative, got {count_filter}")
        self._count = count_filter

    def admission(self):
        return {"min_count": max(1, self._count)}


class ProbabilityEntry(EntryAttr):
    """With this probability, decided by the id."""

    def __init__(self, probability):
        if not isinstance(probability, float):
            raise ValueError(f"ProbabilityEntry: probability must be a float, got {probability!r}")
        if not 0 < probability < 1:
            raise ValueError(f"ProbabilityEntry: probability must be between 0 and 1, got {probability}")
        self._probability = probability

    def admission(self):
        return {"probability": self._probability}
