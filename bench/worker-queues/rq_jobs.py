"""The job that workers of rq find by its name."""

tally = None


def nothing(number):
    tally.note(number)
