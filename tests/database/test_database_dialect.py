from __future__ import annotations

from backoff_schedule.database.dialect import Dialect


def test_a_statement_is_said_in_the_words_and_the_mark_of_its_database() -> None:
    dialect = Dialect({"prefix": "app.", "now": "clock()"}, "%s")
    said = dialect.said("UPDATE {prefix}t SET at = {now} WHERE id = ? AND x = ?")
    assert said == "UPDATE app.t SET at = clock() WHERE id = %s AND x = %s"


def test_a_moving_word_is_never_kept() -> None:
    dialect = Dialect({"now": "clock()"}, "?")
    assert dialect.said("SELECT {now}", now="1") == "SELECT 1"
    assert dialect.said("SELECT {now}", now="2") == "SELECT 2"
    assert dialect.said("SELECT {now}") == "SELECT clock()"
