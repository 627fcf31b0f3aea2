"""Ratings of films: [user id, is female, age group, job, film id, categories, words of the title, [rating]]."""
import functools
import re
import zipfile

import numpy

from paddle._native import native
from paddle.dataset import common
from paddle.dataset.common import fetch  # noqa: F401

_ARCHIVE = "ml-1m.zip"
age_table = [1, 18, 25, 35, 45, 50, 56]
_TEST_SHARE = 0.1
# The made-up set has ratings of so many films by so many users, and knows of as many as the real one: scripts ask for single
# ids of it.
_MADE_UP = {"users": 200, "films": 150, "ratings": 6000}
_REAL = {"users": 6040, "films": 3952, "title words": 5174}
_CATEGORIES = ["Action", "Comedy", "Drama", "Horror", "Romance", "Thriller"]
_OTHER_CATEGORIES = ["Adventure", "Animation", "Children's", "Crime", "Documentary", "Fantasy", "Film-Noir", "Musical", "Mystery",
                     "Sci-Fi", "War", "Western"]
_YEAR = re.compile(r"^(.*)\((\d+)\)$")


class MovieInfo:
    def __init__(self, index, categories, title):
        self.index, self.categories, self.title = int(index), categories, title

    def value(self):
        """[id, ids of categories, ids of the title's words]."""
        kinds, words = movie_categories(), get_movie_title_dict()
        return [self.index, [kinds[c] for c in self.categories], [words[w.lower()] for w in self.title.split()]]

    def __repr__(self):
        return f"<MovieInfo id({self.index}), title({self.title}), categories({self.categories})>"


class UserInfo:
    def __init__(self, index, gender, age, job_id):
        self.index, self.is_male = int(index), gender == "M"
        self.age, self.job_id = age_table.index(int(age)), int(job_id)

    def value(self):
        return [self.index, 0 if self.is_male else 1, self.age, self.job_id]

    def __repr__(self):
        return f"<UserInfo id({self.index}), gender({'M' if self.is_male else 'F'}), age({age_table[self.age]}), job({self.job_id})>"


def _made_up():
    """Users like kinds of films by their age group and sex; ratings follow."""
    rng = numpy.random.RandomState(1)
    users = {i: UserInfo(i, "MF"[rng.randint(2)], age_table[rng.randint(7)], rng.randint(21))
             for i in range(1, _MADE_UP["users"] + 1)}
    films = {i: MovieInfo(i, sorted({_CATEGORIES[k] for k in rng.randint(0, 6, 2)}), f"Film {'abcdefgh'[rng.randint(8)]}")
             for i in range(1, _MADE_UP["films"] + 1)}
    taste = rng.randn(2, 7, len(_CATEGORIES))
    ratings = []
    for _ in range(_MADE_UP["ratings"]):
        u, f = int(rng.randint(1, len(users) + 1)), int(rng.randint(1, len(films) + 1))
        likes = [taste[int(users[u].is_male), users[u].age, _CATEGORIES.index(c)] for c in films[f].categories]
        ratings.append((u, f, float(numpy.clip(round(3 + numpy.mean(likes) + 0.3 * rng.randn()), 1, 5))))
    users.update({i: UserInfo(i, "MF"[i % 2], age_table[i % 7], i % 21) for i in range(len(users) + 1, _REAL["users"] + 1)})
    unseen = range(len(films) + 1, _REAL["films"] + 1)
    words = iter(numpy.array_split(numpy.arange(_REAL["title words"] - 9), len(unseen)))  # nine have been used
    films.update({i: MovieInfo(i, [_OTHER_CATEGORIES[i % 12]], " ".join(f"w{w}" for w in next(words))) for i in unseen})
    return films, users, ratings


def _lines(package, path, name):
    member = next((n for n in package.namelist() if n.endswith(name)), None)
    if member is None:
        raise native.CorruptFileError(f"{path} has no {name}")
    for number, line in enumerate(package.read(member).decode("latin").splitlines(), 1):
        fields = line.strip().split("::")
        if len(fields) < 3:
            raise native.CorruptFileError(f"{path}: {member}:{number}: expected fields between '::', got {line!r:.60}")
        yield fields


def _archived(path):
    films, users, ratings = {}, {}, []
    with zipfile.ZipFile(path) as package:
        for index, title, categories in _lines(package, path, "movies.dat"):
            match = _YEAR.match(title)
            films[int(index)] = MovieInfo(index, categories.split("|"), (match.group(1) if match else title).strip())
        for index, gender, age, job, *_ in _lines(package, path, "users.dat"):
            users[int(index)] = UserInfo(index, gender, age, job)
        for user, film, rating, *_ in _lines(package, path, "ratings.dat"):
            ratings.append((int(user), int(film), float(rating)))
    return films, users, ratings


@functools.lru_cache(maxsize=None)
def _all():
    """(films by id, users by id, ratings)."""
    path = common.find("movielens", _ARCHIVE)
    if path is None:
        common.announce("movielens", _ARCHIVE, f"A MADE-UP set of {_MADE_UP['ratings']} ratings takes its place.")
        return _made_up()
    return _archived(path)


def _reader(is_test):
    def read():
        films, users, ratings = _all()
        rng = numpy.random.RandomState(0)
        for (user, film, rating), draw in zip(ratings, rng.rand(len(ratings))):
            if (draw < _TEST_SHARE) == is_test:
                # As the original scales it: 1 to 5 becomes -3 to 5.
                yield users[user].value() + films[film].value() + [[rating * 2 - 5.0]]
    return read


def train():
    return _reader(False)


def test():
    return _reader(True)


@functools.lru_cache(maxsize=None)
def get_movie_title_dict():
    words = sorted({w.lower() for film in _all()[0].values() for w in film.title.split()})
    return {word: i for i, word in enumerate(words)}


@functools.lru_cache(maxsize=None)
def movie_categories():
    kinds = sorted({c for film in _all()[0].values() for c in film.categories})
    return {kind: i for i, kind in enumerate(kinds)}


def max_movie_id():
    return max(_all()[0])


def max_user_id():
    return max(_all()[1])


def max_job_id():
    return max(user.job_id for user in _all()[1].values())


def movie_info():
    return _all()[0]


def user_info():
    return _all()[1]
