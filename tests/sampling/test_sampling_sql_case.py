"""The case of names in SQL: what SQLite takes for the same, and no more."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import maskwright as mw
from maskwright.sampling import SqlNames

BYTES = mw.Vocabulary.from_bytes([*(bytes([b]) for b in range(256)), b"</s>"], eos_ids=256)


def ids(text: str) -> list[int]:
    return list(text.encode())


def test_only_ascii_letters_are_the_same_in_either_case() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute('create table "Ü" (C, "Ä")')
        monitor = SqlNames(BYTES, connection)
        assert monitor.tables == {"Ü": ("c", "Ä")}
        for text in (
            "select c from Ü",
            'SELECT "C" FROM "Ü" WHERE Ä > 1',
            "with É as (select 1) select * from É",
        ):
            connection.execute("explain " + text)  # it is prepared
            assert monitor.complete(ids(text)), text
        for text in (
            "select c from ü where",
            "select ä from Ü where ",
            "with É as (select 1) select * from é ",
        ):
            assert not monitor.prefix(ids(text)), text


def test_digits_of_other_scripts_begin_names() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute('create table "٣" (c, "٤d")')
        monitor = SqlNames(BYTES, connection)
        for text in ("select c from ٣", "select ٤d from ٣ as ५ where ५.c > 1", "select c + 1e3 from ٣"):
            connection.execute("explain " + text)
            assert monitor.complete(ids(text)), text
        assert not monitor.prefix(ids("select c from ٣ ५ where ५.x > 1"))


def test_byte_order_marks_are_blanks_in_front_of_words() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table singer (id)")
        monitor = SqlNames(BYTES, connection)
        for text in ("\ufeffselect id from singer", "select \ufeff1 from singer where \ufeff id > 1"):
            connection.execute("explain " + text)
            assert monitor.complete(ids(text)), text


def test_what_begins_a_comment_is_no_operator_yet() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table singer (id)")
        monitor = SqlNames(BYTES, connection)
        for text in (
            "select id from singer where abs /* c */ (id) > 1",
            "select id from singer where abs -- c\n (id) > 1",
            "select id from singer s where s/**/.id > 1",
        ):
            connection.execute("explain " + text)
            assert monitor.complete(ids(text)), text
        for text in ("select id from singer where abs / i", "select id from singer where nox - "):
            assert not monitor.prefix(ids(text + "1 ")), text
