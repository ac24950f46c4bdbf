from backoff_schedule.refusals import decimal_digits, refusal, shown


class Unprintable:
    def __repr__(self) -> str:
        message = "no repr"
        raise RuntimeError(message)


def test_a_refusal_names_the_argument_the_value_and_the_rule() -> None:
    assert refusal("base", -1, "0 or more") == "base (-1) needs to be 0 or more"


def test_a_long_value_is_shown_cut_to_80_characters() -> None:
    text = shown("x" * 1_000_000)
    assert len(text) == 80
    assert text.endswith("...")


def test_a_value_of_exactly_80_characters_is_shown_whole() -> None:
    assert shown("x" * 78) == repr("x" * 78)


def test_a_value_whose_repr_fails_is_shown_by_its_type() -> None:
    assert shown(Unprintable()) == "<Unprintable>"
    assert shown(10**5000) == "<int>"


def test_an_int_of_any_length_has_its_decimal_digits() -> None:
    assert decimal_digits(-7) == "-7"
    assert decimal_digits(10**5000) == "1" + "0" * 5000
    assert decimal_digits(-(10**5000) - 1) == "-1" + "0" * 4999 + "1"
