"""When a row of a table on the parameter servers is made, and how it ends. Until then it is pulled as zeros and not trained."""


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


class ShowClickEntry(EntryAttr):
    """At once; and every row has statistics: how often examples with its id were shown and clicked, as the variables of these
    names say (one value for each example). fleet.shrink() is the end of a day: show and click of all rows fade by
    show_click_decay_rate, and a row goes whose score nonclk_coeff * (show - click) + click_coeff * click is below
    delete_threshold, or that was not seen for more than delete_after_unseen_days days."""

    def __init__(self, show_name, click_name, show_click_decay_rate=0.98, nonclk_coeff=0.1, click_coeff=1.0,
                 delete_threshold=0.8, delete_after_unseen_days=30):
        if not isinstance(show_name, str) or not isinstance(click_name, str):
            raise ValueError(f"ShowClickEntry: show_name and click_name must be names of variables, got {show_name!r} and "
                             f"{click_name!r}")
        self._settings = {"show": show_name, "click": click_name,
                          "show_click_decay_rate": float(show_click_decay_rate), "nonclk_coeff": float(nonclk_coeff),
                          "click_coeff": float(click_coeff), "delete_threshold": float(delete_threshold),
                          "delete_after_unseen_days": int(delete_after_unseen_days)}

    def admission(self):
        return dict(self._settings)
