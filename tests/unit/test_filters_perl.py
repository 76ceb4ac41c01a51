"""Perl's spellings in a regular expression: POSIX ERE reads most of them as something else, so all are refused."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuptiprof.errors import FilterError
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.filter.launch import Launch

# expression, the part of it that the message names, what the hint offers
REFUSED = [
    (r"gemm_\d+", r"\d", "[0-9]"),
    (r"gemm_\D", r"\D", "[^0-9]"),
    (r"gemm_[\d]+", r"\d", "0-9"),
    (r"[\w:]+", r"\w", "[:alnum:]_"),
    (r"[^\s]", r"\s", "[:space:]"),
    (r"[a-z\]]", r"\]", "] first"),
    (r"[^\]]*", r"\]", "] first"),
    (r"[a\-z]", r"\-", "- last"),
    (r"[\.]", r"\.", "a backslash is itself"),
    (r"a[x\n]", r"\n", "[:space:]"),
    (r"a[\S]", r"\S", "[^[:space:]]"),
    (r"\x41", r"\x", "the character itself"),
    (r"\u0041", r"\u", "the character itself"),
    (r"\t", r"\t", "[[:space:]]"),
    (r"a\nb", r"\n", "[[:space:]]"),
    (r"\h", r"\h", "[[:blank:]]"),
    (r"\Agemm", r"\A", "^"),
    (r"gemm\Z", r"\Z", "$"),
    (r"gemm\z", r"\z", "$"),
    (r"\Qa<b>\E", r"\Q", "backslash before each"),
    (r"\p{Lu}", r"\p", "[[:upper:]]"),
    (r"a\K", r"\K", "Leave it out"),
    (r"\R", r"\R", "[[:space:]]"),
    (r"\N", r"\N", "."),
    (r"\g1", r"\g", "alternatives"),
    (r"\0", r"\0", "the character itself"),
    (r"\y", r"\y", "without a backslash"),
    (r"f\<int\>", r"\<", "word boundary"),
    (r"a\'", r"\'", "$"),
    ("(?!gemm)", "(?!", "exclude="),
    ("a(?<!b)c", "(?<", "exclude="),
    ("gemm(?=_nt)", "(?=", "parts of the expression"),
    ("(?<=a)b", "(?<", "parts of the expression"),
    ("(?:a|b)", "(?:", "( )"),
    ("(?P<n>a)", "(?P", "( )"),
    ("(?<n>a)", "(?<", "( )"),
    ("(?i)gemm", "(?i", "[Gg]emm"),
    ("a.*?b", "*?", "second quantifier"),
    ("a.+?b", "+?", "second quantifier"),
    ("a{2}?", "}?", "second quantifier"),
    ("a++", "++", "second quantifier"),
    ("[:digit:]+", "[:digit:]", "[[:digit:]]"),
]


@pytest.mark.parametrize(("expression", "part", "hint"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused_with_the_posix_spelling(expression, part, hint):
    for make in (
        lambda e: KernelFilter("regex:" + e),
        lambda e: KernelFilter(exclude="regex:" + e),
        lambda e: KernelFilter(regions="regex:" + e),
        lambda e: KernelFilter.from_nvprof(f"::{e}:1"),
        lambda e: KernelFilter.from_ncu(kernel_name="regex:" + e),
    ):
        if ":" in expression and make("x") == KernelFilter.from_nvprof("::x:1"):
            continue
        with pytest.raises(FilterError) as info:
            make(expression)
        assert f"'{part}' is not part of POSIX ERE" in info.value.message
        assert hint in info.value.hint


def test_refused_in_nvtx_expressions():
    for expression, problem in [(r"regex:A[\d]x", r"\d"), (r"regex:\w+\d/", r"\d"), (r"regex:D(?!x)@A/", "(?!")]:
        with pytest.raises(FilterError, match=re.escape(problem)):
            KernelFilter.from_ncu(nvtx_include=expression)


def test_the_position_is_that_of_the_spelling():
    with pytest.raises(FilterError, match=r"at character 13: '\\d'"):
        KernelFilter(r"regex:gemm_[\d]+")


READ_AS_PERL_DOES = [
    r"\w+_\w", r"a\sb", r"\bgemm\b", r"a\.b", r"a\*b", r"\(x\)", r"\[x\]", r"a\{2\}", r"a\|b", r"\^a\$", r"a\\b", r"a\-b",
    r"a\:b", r"a\<"[:2] + "b", r"[\\]", r"[\\d]", r"[a\\]x", r"[]a]", r"[^]a]", r"[a-]", r"[[:digit:]_]+", r"[a[:alpha:]]",
    r"(a+)?", r"a{2,3}", r"(a|b)*c", r"\/", r"\,",
]  # fmt: skip


@pytest.mark.parametrize("expression", READ_AS_PERL_DOES)
def test_what_means_the_same_is_accepted(expression):
    python = expression.replace("[[:digit:]_]", "[0-9_]").replace("[a[:alpha:]]", "[a-zA-Z]")
    python = python.replace("[]a]", r"[\]a]").replace("[^]a]", r"[^\]a]")
    texts = ["gemm", "a b", "a.b", "a*b", "(x)", "[x]", "a{2}", "a|b", "^a$", "a\\b", "a-b", "a:b", "d", "\\", "\\x", "]", "7_",
             "aa", "aaaa", "c", "abac", "/", ",", "w_w", "", "ab", "a"]  # fmt: skip
    found = KernelFilter("regex:" + expression, base="mangled").select([Launch(name=t) for t in texts])
    assert found == [i for i, t in enumerate(texts) if re.search(python, t)]


PIECES = [
    *["a", "b", "7", "_", ".", "[ab]", "[^b]", "[0-9]", "(", ")", "|", "*", "+", "?", "{2}", "{1,2}", "^", "$", "\\"],
    *[
        "[",
        "]",
        "(?:",
        "(?!",
        "d",
        "w",
        r"\d",
        r"\w",
        r"[\d]",
        r"[\w]",
        r"\x41",
        "-",
        r"\.",
        r"\]",
        "*?",
        "++",
        "<",
        ">",
    ],
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@settings(max_examples=1500, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join),
    st.lists(st.text("ab7_.]d\\wx-<>", max_size=6), max_size=6),
)
def test_what_both_accept_selects_the_same(expression, texts):
    """An expression that is neither refused here nor by Python's re means the same to both."""
    try:
        ours = KernelFilter("regex:" + expression, base="mangled")
    except FilterError as error:
        assert error.hint
        return
    try:
        theirs = re.compile(re.sub(r"\$", r"\\Z", expression))
    except (re.error, OverflowError):
        return
    assert ours.select([Launch(name=t) for t in texts]) == [i for i, t in enumerate(texts) if theirs.search(t)]
