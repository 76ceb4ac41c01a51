"""KernelFilter: our keywords, the details of nvprof's and ncu's rules, errors."""

import pytest

from cuptiprof.errors import FilterError
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.filter.launch import Launch
from cuptiprof.text.nearest import nearest

VECTOR = "_ZN2at6native29vectorized_elementwise_kernelILi4EfEEviT0_"
VECTOR_DEMANGLED = "void at::native::vectorized_elementwise_kernel<4, float>(int, float)"


def names(*texts):
    return [Launch(name=t) for t in texts]


def test_no_restriction():
    everything = KernelFilter()
    assert everything.select(names("a", "b")) == [0, 1]
    assert everything.selects_all and not everything.is_stateful and not everything.needs_regions
    assert everything.describe() == "all kernels"
    assert everything.select([]) == []


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("vectorized_elementwise_kernel", True),
        ("vectorized", False),
        ("vectorized*", True),
        ("*_KERNEL", False),
        ("at::native::vectorized_elementwise_kernel", True),
        ("at::*", True),
        ("*::vectorized_*", True),
        ("native::*", False),
        ("*vectorized_elementwise_kernel<4, float>*", True),
        ("void at::*(int, float)", True),
        ("*<8,*", False),
        ("regex:^vectorized", True),
        ("regex:^void", False),
        ("regex:at::native", True),
        ("regex:kernel<4, float>", True),
        ("regex:(element|foo)wise_k", True),
    ],
)
@pytest.mark.parametrize("given", ["mangled", "demangled", "name"])
def test_pattern_looks_at_the_form_it_is_written_for(pattern, matches, given):
    launch = {"mangled": Launch(mangled=VECTOR), "demangled": Launch(demangled=VECTOR_DEMANGLED)}.get(
        given, Launch(name=VECTOR)
    )
    assert KernelFilter(pattern).select([launch]) == ([0] if matches else [])


def test_base_fixes_the_form():
    launch = [Launch(name=VECTOR)]
    assert KernelFilter("_ZN2at*", base="mangled").select(launch) == [0]
    assert KernelFilter("vectorized*", base="mangled").select(launch) == []
    assert KernelFilter("void at::*", base="demangled").select(launch) == [0]
    assert KernelFilter("at::*", base="demangled").select(launch) == []
    assert KernelFilter.from_ncu(kernel_name="vectorized_elementwise_kernel").select(launch) == [0]
    assert KernelFilter.from_ncu(kernel_name="vectorized").select(launch) == []
    assert KernelFilter.from_ncu(kernel_name=VECTOR_DEMANGLED, base="demangled").select(launch) == [0]
    assert KernelFilter.from_ncu(kernel_name="regex:^_Z.*ILi4E", base="mangled").select(launch) == [0]
    assert KernelFilter.from_ncu(kernel_name="vector*").select(launch) == []  # a literal, not a glob


def test_include_exclude():
    launches = names("sgemm", "hgemm", "relu", "gemm_tail")
    assert KernelFilter(["*gemm*", "relu"], exclude="*_tail").select(launches) == [0, 1, 2]
    assert KernelFilter(exclude=["*gemm", "regex:^re"]).select(launches) == [3]


def test_regions():
    paths = ["", "fwd", "fwd/layer0", "fwd/layer0/attn", "bwd/layer0", r"a\/b/c", r"back\\slash/x"]
    launches = [Launch(name="k", region=path) for path in paths]

    def inside(**keywords):
        return [paths[i] for i in KernelFilter(**keywords).select(launches)]

    assert inside(regions="fwd") == ["fwd", "fwd/layer0", "fwd/layer0/attn"]
    assert inside(regions="layer0") == ["fwd/layer0", "fwd/layer0/attn", "bwd/layer0"]
    assert inside(regions="fwd/*") == ["fwd/layer0", "fwd/layer0/attn"]
    assert inside(regions="fwd/layer?") == ["fwd/layer0", "fwd/layer0/attn"]
    assert inside(regions="*/attn") == ["fwd/layer0/attn"]
    assert inside(regions="regex:layer[0-9]$") == ["fwd/layer0", "bwd/layer0"]
    assert inside(regions="*") == paths[1:]
    assert inside(exclude_regions="*") == [""]
    assert inside(regions=["fwd", "bwd"], exclude_regions="attn") == ["fwd", "fwd/layer0", "bwd/layer0"]
    assert inside(regions="regex:.*") == paths[1:]  # outside any region no region pattern holds
    assert inside(regions="b") == []  # "a/b" is one name
    assert inside(regions="c") == [r"a\/b/c"]
    assert inside(regions=r"a\/b/*") == [r"a\/b/c"]
    assert inside(regions="back\\slash") == [r"back\\slash/x"]


def test_regions_count_as_push_pop_ranges_of_the_default_domain():
    launches = [
        Launch(region=r"step/fwd/a\/b"),
        Launch(region="fwd"),
        Launch(push_pop={"torch": ["fwd"]}),
        Launch(),
    ]
    assert KernelFilter.from_ncu(nvtx_include="fwd/").select(launches) == [0, 1]
    assert KernelFilter.from_ncu(nvtx_include="[fwd").select(launches) == [1]
    assert KernelFilter.from_ncu(nvtx_include=r"fwd/a\/b]").select(launches) == [0]
    assert KernelFilter.from_ncu(nvtx_include="torch@fwd/").select(launches) == [2]
    assert KernelFilter.from_ncu(nvtx_exclude="fwd/").select(launches) == [2, 3]
    assert KernelFilter.from_ncu(nvtx_include="fwd").select(launches) == []  # start/end


def test_integers():
    launches = [
        Launch(name="k", device=d, stream=s, context=c, thread=t)
        for d in (0, 1)
        for s in (7, 8)
        for c in (1, 2)
        for t in (5, 6)
    ]

    def chosen(**keywords):
        return [launches[i] for i in KernelFilter(**keywords).select(launches)]

    assert {x.device for x in chosen(devices=1)} == {1}
    assert {x.stream for x in chosen(streams=[7])} == {7}
    assert {x.context for x in chosen(contexts=(2, 3))} == {2}
    assert {x.thread for x in chosen(threads={6})} == {6}
    assert len(chosen(devices=[0, 1, 1], streams=[7, 8])) == len(launches)
    assert len(chosen(devices=1, streams=8, contexts=2, threads=6)) == 1


def test_sizes_are_exact():
    launches = [
        Launch(grid=(2,), block=256),
        Launch(grid=(2, 2), block=(256, 1, 1)),
        Launch(grid=(2, 1, 1), block=128),
    ]
    assert KernelFilter(grid=2).select(launches) == [0, 2]
    assert KernelFilter(grid=(2, 2), block=256).select(launches) == [1]
    assert KernelFilter(block=(256,)).select(launches) == [0, 1]


def test_skip_every_count():
    launches = names(*["k", "x"] * 10)
    assert KernelFilter("k", skip=2, every=3, count=2).select(launches) == [4, 10]
    assert KernelFilter("k", every=4).select(launches) == [0, 8, 16]
    assert KernelFilter("k", count=0).select(launches) == []
    assert KernelFilter(skip_before_match=3, count=1).select(launches) == [3]
    assert KernelFilter("k", skip_before_match=3).select(launches)[0] == 4


def test_device_comes_before_skip_before_match():
    launches = [Launch(name="k", device=i % 2) for i in range(8)]
    assert KernelFilter(devices=1, skip_before_match=2).select(launches) == [5, 7]


def test_per_launch_config_counts_each_configuration():
    a, b = Launch(name="k", grid=1), Launch(name="k", grid=2)
    c = Launch(name="k", grid=1, shared_memory=64)
    launches = [a, b, a, c, b, a, c]
    assert KernelFilter(skip=1, count=1, mode="per-launch-config").select(launches) == [2, 4, 6]


def test_nvprof_fields():
    launches = [Launch(name="bar", context=1, stream=i % 2, stream_name=("foo", "")[i % 2]) for i in range(6)]
    assert KernelFilter.from_nvprof("1:foo:bar:2").select(launches) == [2]
    assert KernelFilter.from_nvprof("1:1:bar:2").select(launches) == [3]
    assert KernelFilter.from_nvprof("::b.r:1|3").select(launches) == [0, 1, 4, 5]
    assert KernelFilter.from_nvprof("2:::").select(launches) == []
    assert KernelFilter.from_nvprof(["::bar:1", "1:foo:bar:3"]).select(launches) == [0, 1, 4]
    qualified = [Launch(name=VECTOR), Launch(name=VECTOR)]
    assert KernelFilter.from_nvprof("::at::native::vec:2").select(qualified) == [1]
    assert KernelFilter.from_nvprof("0::at::native::vec:2").select(qualified) == [1]
    assert KernelFilter.from_nvprof("native::vec").select(qualified) == [0, 1]


def test_ncu_counts_invocations_by_name_and_configuration():
    launches = [Launch(name="k", grid=g, stream=s) for g, s in [(1, 1), (2, 1), (1, 2), (1, 1), (2, 2)]]
    assert KernelFilter.from_ncu(kernel_id=":::2").select(launches) == [2, 4]
    assert KernelFilter.from_ncu(kernel_id=":1|2::2").select(launches) == [3]  # the stream is given: counted by it
    assert KernelFilter.from_ncu(kernel_id=":1::2").select(launches) == [3]
    many = [Launch(name="k")] * 30
    assert KernelFilter.from_ncu(kernel_id=":::.*5|3").select(many) == [2, 4, 14, 24]


def test_ncu_id_fields():
    launches = [Launch(name="k", context=c) for c in (1, 5, 15, 51)]
    assert KernelFilter.from_ncu(kernel_id="1|5:::").select(launches) == [0, 1]
    assert KernelFilter.from_ncu(kernel_id="15:::").select(launches) == [2]
    named = [Launch(name="k", stream_name="main+io"), Launch(name="k", stream_name="io")]
    assert KernelFilter.from_ncu(kernel_id=":main+io::").select(named) == [0]
    assert KernelFilter.from_ncu(kernel_id=":io$::").select(named) == [0, 1]
    assert KernelFilter.from_ncu(kernel_id="::regex:a::b:", base="demangled").select(
        [Launch(demangled="void a::b<1>()")]
    ) == [0]


NVTX = [
    ("A/", ["A"], True),
    ("A/", ["B", "A", "C"], True),
    ("A/", [], False),
    ("[A", ["A", "B"], True),
    ("A]", ["B", "A"], True),
    ("A]", ["A", "B"], False),
    ("[A]", ["A"], True),
    ("[A]", ["A", "A"], False),
    ("A/*/B", ["A", "B"], True),
    ("A/*/B", ["A", "x", "y", "B", "z"], True),
    ("A/*/B", ["B", "A"], False),
    ("[A/*/B]", ["A", "B", "x", "B"], True),
    ("A/+/+/B", ["A", "x", "y", "B"], True),
    ("A/+/B", ["A", "B", "x", "B"], False),
    ("[A/B/C]", ["A", "B", "C"], True),
    (r"A\/B/", ["A/B"], True),
    (r"\[A\]/", ["[A]"], True),
    (r"a\*b\+c\,d\@e/", ["a*b+c,d@e"], True),
    (r"back\\/", ["back\\"], True),
    ("regex:^A[0-9]+$/", ["A12"], True),
    ("regex:^A[0-9]+$/", ["A12b"], False),
    ("regex:/[AB]$/", ["xB"], True),
    ("regex:A[0-9/]]", ["A7"], True),
    ("regex:[/[AB]x/y]", ["Bx", "y"], True),
    ("regex:A/*/B$/", ["A1", "q", "xB"], True),
    (r"regex:a\.b/", ["a.b"], True),
    (r"regex:a\.b/", ["axb"], False),
    (r"regex:^a\/b$/", ["a/b"], True),
]


@pytest.mark.parametrize(("expression", "stack", "matches"), NVTX)
def test_nvtx_push_pop(expression, stack, matches):
    assert KernelFilter.from_ncu(nvtx_include=expression).select([Launch(push_pop={"": stack})]) == (
        [0] if matches else []
    )
    assert KernelFilter.from_ncu(nvtx_exclude=expression).select([Launch(push_pop={"": stack})]) == (
        [] if matches else [0]
    )
    assert KernelFilter.from_ncu(nvtx_include=expression).select([Launch(push_pop={"D": stack})]) == []


def test_nvtx_domains_and_alternatives():
    launches = [
        Launch(push_pop={"D": ["A"], "": ["B"]}),
        Launch(start_end={"D": ["A", "B"]}),
        Launch(start_end={"": ["A"]}),
    ]
    assert KernelFilter.from_ncu(nvtx_include="D@A/").select(launches) == [0]
    assert KernelFilter.from_ncu(nvtx_include="D@B,A").select(launches) == [1]
    assert KernelFilter.from_ncu(nvtx_include="A").select(launches) == [2]
    assert KernelFilter.from_ncu(nvtx_include=["D@A/", "A"]).select(launches) == [0, 2]
    assert KernelFilter.from_ncu(nvtx_include=["D@A/", "A"], nvtx_exclude="B/").select(launches) == [2]


BAD = [
    (lambda: KernelFilter(""), "character 1"),
    (lambda: KernelFilter("regex:"), "character 7"),
    (lambda: KernelFilter("regex:a(b"), "character 8: unmatched ("),
    (lambda: KernelFilter("regex:a)b"), "character 8: unmatched )"),
    (lambda: KernelFilter("regex:é[x"), "character 8: unmatched ["),
    (lambda: KernelFilter("regex:x\\"), "trailing backslash"),
    (lambda: KernelFilter(r"regex:(a)\1"), "back-references"),
    (lambda: KernelFilter(r"regex:\d+"), "POSIX ERE"),
    (lambda: KernelFilter("regex:*a"), "bad kernel pattern"),
    (lambda: KernelFilter("regex:a{5,2}"), "bad kernel pattern"),
    (lambda: KernelFilter("regex:((a{99}){99}){99}"), "too large"),
    (lambda: KernelFilter("regex:" + "(" * 300 + ")" * 300), "200 deep"),
    (lambda: KernelFilter("regex:a\0b"), "NUL"),
    (lambda: KernelFilter(regions="regex:["), "region pattern"),
    (lambda: KernelFilter(mode="gpu"), "unknown filter mode 'gpu'"),
    (lambda: KernelFilter(base="name"), "unknown name base 'name'"),
    (lambda: KernelFilter(skip=-1), "skip=-1"),
    (lambda: KernelFilter(count=-1), "count=-1"),
    (lambda: KernelFilter(every=0), "every=0"),
    (lambda: KernelFilter(skip_before_match=-5), "skip_before_match=-5"),
    (lambda: KernelFilter(skip=1.5), "not an integer"),
    (lambda: KernelFilter(devices=-1), "devices=-1"),
    (lambda: KernelFilter(devices=2**32), "out of range"),
    (lambda: KernelFilter(devices=[]), "empty list"),
    (lambda: KernelFilter([]), "empty list"),
    (lambda: KernelFilter([3]), "not text"),
    (lambda: KernelFilter(grid=(1, 2, 3, 4)), "grid=(1, 2, 3, 4)"),
    (lambda: KernelFilter(block="x"), "not a size"),
    (lambda: KernelFilter(block=0), "too small"),
    (lambda: KernelFilter.from_nvprof(""), "empty filter"),
    (lambda: KernelFilter.from_nvprof("::gemm:0"), "character 8: invocation 0"),
    (lambda: KernelFilter.from_nvprof("::gemm:one"), "character 8"),
    (lambda: KernelFilter.from_nvprof("::at::native"), "invocation is a number"),
    (lambda: KernelFilter.from_nvprof("::a(:1"), "character 4: unmatched ("),
    (lambda: KernelFilter.from_nvprof("99999999999:::"), "out of range"),
    (lambda: KernelFilter.from_nvprof([f"k{i}" for i in range(65)]), "64"),
    (lambda: KernelFilter.from_ncu(kernel_id="foo"), "fewer than four fields"),
    (lambda: KernelFilter.from_ncu(kernel_id="1:2:foo"), "fewer than four fields"),
    (lambda: KernelFilter.from_ncu(kernel_id="::regex::1"), "empty regular expression"),
    (lambda: KernelFilter.from_ncu(kernel_name=""), "empty name"),
    (lambda: KernelFilter.from_ncu(nvtx_include=""), "no range name"),
    (lambda: KernelFilter.from_ncu(nvtx_include="A//B"), "character 3: empty range name"),
    (lambda: KernelFilter.from_ncu(nvtx_include="A,"), "empty range name"),
    (lambda: KernelFilter.from_ncu(nvtx_include="D@"), "no range name"),
    (lambda: KernelFilter.from_ncu(nvtx_include="@A"), "no domain"),
    (lambda: KernelFilter.from_ncu(nvtx_include="D@E@A"), "second @"),
    (lambda: KernelFilter.from_ncu(nvtx_include="A/*"), "quantifier where"),
    (lambda: KernelFilter.from_ncu(nvtx_include="*/A"), "quantifier where"),
    (lambda: KernelFilter.from_ncu(nvtx_include="A*/"), "inside a name"),
    (lambda: KernelFilter.from_ncu(nvtx_include="A,B/"), "inside a name"),
    (lambda: KernelFilter.from_ncu(nvtx_include="A/[B"), "inside a name"),
    (lambda: KernelFilter.from_ncu(nvtx_include="[]"), "no range name"),
    (lambda: KernelFilter.from_ncu(nvtx_include="regex:A[0-9]"), "NVTX"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_errors_say_where_and_what_to_do(make, message):
    with pytest.raises(FilterError) as info:
        make()
    assert message in info.value.message
    assert info.value.hint


def test_hostile_names():
    nul, long = "a\0gemm", "g" * 32000 + "emm"
    launches = names(
        nul,
        long,
        "_Z" + "9" * 32000,
        "<" * 32000,
        "(" * 32000,
        "f<" + "a::" * 10000,
        "\udcff\udc80gemm",
        "é" * 3000,
    )
    assert KernelFilter("*gemm").select(launches) == [0, 1, 6]
    assert KernelFilter("regex:gemm").select(launches) == [0, 1, 6]
    assert KernelFilter("regex:a.*z").select(names("a" * 32000)) == []  # linear: quadratic takes a second
    assert KernelFilter("a\0*").select(launches) == [0]
    assert KernelFilter("é" * 3000).select(launches) == [7]
    assert KernelFilter("*a*b*c*d*e*f*z").select(names("abcdef" * 5000)) == []


def test_text_and_equality():
    f = KernelFilter(
        "*gemm*",
        exclude="x",
        regions="fwd",
        devices=[1, 0],
        grid=(2, 3),
        skip=1,
        every=2,
        count=5,
        mode="per-gpu",
    )
    assert f.describe() == (
        "kernels '*gemm*', not kernels 'x', in region 'fwd', devices 0,1, grid (2,3,1), "
        "skip 1, every 2, count 5, per-gpu"
    )
    assert repr(f) == f"<KernelFilter {f.describe()}>"
    assert KernelFilter("a") == KernelFilter(["a"]) and hash(KernelFilter("a")) == hash(KernelFilter(["a"]))
    assert KernelFilter("a") != KernelFilter("b")
    assert KernelFilter("a\n\udc80").describe() == r"kernels 'a\x0a\xed\xb2\x80'"
    assert KernelFilter("*gemm*").name_patterns == ["*gemm*"]
    assert KernelFilter.from_nvprof("::gemm:1").name_patterns == ["gemm"]


def test_matches_name_is_the_stateless_verdict():
    f = KernelFilter("*gemm*", exclude="*tail*", count=1)
    assert [f.matches_name(n) for n in ("sgemm", "gemm_tail", "relu", "sgemm")] == [True, False, False, True]
    assert KernelFilter.from_ncu(kernel_id="::foo:2").matches_name("foo")
    assert not KernelFilter.from_ncu(kernel_id="::foo:2").matches_name("bar")


def test_nearest_names():
    known = [
        VECTOR,
        "void at::native::reduce_kernel<512, 1>(int)",
        "ampere_sgemm_128x64_tn",
        "triton_poi_fused_add_0",
        "relu",
        "copy",
    ]
    assert nearest("vectorised_kernel", known)[0] == "vectorized_elementwise_kernel"
    assert nearest("regex:.*GEMM.*", known, k=1) == ["ampere_sgemm_128x64_tn"]
    assert nearest("at::native::reduce*", known)[0] == "reduce_kernel"
    assert nearest("redcue_kernel", known, k=1) == ["reduce_kernel"]
    assert len(nearest("x", known, 5)) == 5
    assert nearest("x", []) == []
    assert nearest("", ["b", "a", "a"], k=9) == ["a", "b"]
