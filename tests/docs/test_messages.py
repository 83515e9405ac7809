"""Checks that a message which a page quotes is one that the sources word so: what is quoted may have gone."""

import pytest
from messages import Sources, quoted_messages, texts_of_sources
from pages import PAGES

SOURCES = Sources(texts_of_sources())
EXAMPLES = Sources(
    ["{} cannot join: {}", "rank {}", "{} died", "; its last call was {}", "count %s is {}{}, too many"]
)


@pytest.mark.parametrize("page", [page for page in PAGES if quoted_messages(page)])
def test_every_message_that_a_page_quotes_is_one_of_the_sources(page):
    gone = [message for message in quoted_messages(page) if not SOURCES.have(message)]
    assert not gone, f"{page} quotes what no source says any more:\n" + "\n".join(gone)


def test_there_are_messages_to_look_for():
    assert len(quoted_messages("docs/reference/errors.md")) > 30


@pytest.mark.parametrize(
    "message",
    ["rank 0 cannot join: rank 1 died", "rank 3 died; its last call was ...", "count 5 is 7, too many"],
)
def test_a_message_made_of_the_formats_is_found(message):
    assert EXAMPLES.have(message)


@pytest.mark.parametrize(
    "message",
    [
        "rank 0 cannot join: it sleeps",
        "rank 0 has died",
        "nobody can tell why",
        "rank 0 cannot come: rank 1 died",
    ],
)
def test_a_message_with_words_of_its_own_is_not_found(message):
    assert not EXAMPLES.have(message)
