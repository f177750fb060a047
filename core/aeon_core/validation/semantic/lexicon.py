"""What the rules know of English: small closed classes of general words, none of any one domain."""

from __future__ import annotations

import re

from aeon_core.validation.semantic.stems import stem, stems, words

FUNCTION_WORDS = words(
    """a an the this that these those it its they them their he him his she her hers we us our you your i me my one
    of in on at to for from by with without within into onto upon about over under between among through during
    before after until till since against across along around near off out up down as than per via like such and or
    but nor so yet if then else when where while whether which who whom whose what how why because although though
    is are was were be been being am do does did done has have had having can could may might must shall should will
    would not no never only also too very just still even again there here each every all any both either neither
    few many much more most less least other another own same some several enough let lets don't doesn't
    please first second third next last finally now ahead apart away back onto toward towards s t etc"""
)
"""Words that hold a sentence together."""

LEADING_WORDS = words(
    """please then first second third next finally lastly now also and afterwards subsequently carefully quickly
    simply just let's we i you will should must shall need needs to can the agent model user llm again once more
    additionally optionally manually automatically do not don't never avoid"""
)
"""Words that may stand before the verb of a step."""

PARTICLES = words("e-mail re-run follow-up set-up")

_COUNTED = re.findall(
    r"\w+",
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty""",
)

NUMBER_WORDS: dict[str, float] = {word: float(number) for number, word in enumerate(_COUNTED) if word != "one"} | {
    "hundred": 100.0,
    "thousand": 1000.0,
    "dozen": 12.0,
    "thirty": 30.0,
    "forty": 40.0,
    "fifty": 50.0,
}
"""`one` is left out: it is a pronoun as often as a number."""

IMPLIED_NUMBERS: dict[str, tuple[float, ...]] = {
    "doubl": (2,),
    "twic": (2,),
    "halv": (2, 0.5),
    "half": (2, 0.5),
    "squar": (2,),
    "cub": (3,),
    "tripl": (3,),
    "third": (3,),
    "quart": (4, 0.25),
}

EMPTY_VERBS = stems("handle deal tackle manage figure consider brainstorm")
"""Verbs that say nothing of what is done, whatever their object."""

EMPTY_PHRASES = frozenset(
    {
        ("work", "on"),
        ("take", "care"),
        ("sort", "out"),
        ("look", "into"),
        ("look", "after"),
        ("think", "about"),
        ("think", "of"),
        ("see", "about"),
        ("see", "to"),
        ("attend", "to"),
        ("come", "up"),
        ("make", "sure"),
    }
)
"""A verb and the word after it that together say as little."""

WEAK_VERBS = stems(
    """do try attempt proceed continue go keep finalize finish complete conclude wrap start begin act perform carry
    address accomplish achieve pursue undertake arrange take look come explore help support facilitate work think
    improve optimize enhance polish fix solve resolve process prepare make get ensure update adjust change
    clean refine use apply provide setup set put implement develop streamline boost strengthen tweak modify
    revise execute run investigate examine analyze research study collect gather obtain find generate create produce
    build add define determine identify evaluate assess understand learn plan organize bring"""
)
"""Verbs that need an object of their own to say what is done."""

EMPTY_NOUNS = stems(
    """thing stuff anything everything something nothing whatever whichever task work job item detail part piece
    rest remainder aspect matter issue problem bug error case edge situation need requirement way approach solution
    goal objective purpose result outcome output input content data information info material knowledge insight
    improvement adjustment modification change fix enhancement action activity effort measure step process
    procedure research analysis investigation study planning implementation quality performance efficiency
    robustness usability experience success progress idea option possibility concept element component system project
    plan best math magic necessary needful proper everyone area topic subject point stage phase fact resource factor
    consideration concern challenge tool finishing touch miscellaneous misc
    appearance look feel impression usual leftover""",
)
"""Nouns that stand for any object."""

HOLLOW_HEADS = words("stuff thing things aspect aspects")
"""Nouns that make nothing of the word before them: `the technical stuff`."""

HOLLOW_ENDS = words("bit bits side sides part parts angle front")
"""Nouns that do so behind a verb that says nothing: `handle the legal side`, but not `measure the longer side`."""

HEDGES = stems("appropriately properly suitably adequately accordingly somehow nicely better best effectively smoothly")
"""Words that leave open how something is done."""

LOOSE_WORDS = stems(
    """appropriate proper suitable adequate correct correctly something various relevant needed necessary applicable
    possible possibly maybe perhaps good nice great well fine okay ok hard efficiently thoroughly generally basically
    sufficient sufficiently desired required useful optimal ideal reasonable right seem seems fit
    overall general remaining left"""
)
"""Words that leave open how much or which; without an object they add nothing to it."""

BLANKET_WORDS = words("everything anything something stuff things thing whatever etc somehow needful everyone misc")
"""Words that alone make an object unknown."""

DEICTIC_SUPPORT = stems(
    """read load open fetch get retrieve list parse import collect gather query look locate note record
    install set configure prepare initialize connect authenticate download clone
    verify check test validate confirm review proofread compare measure inspect
    summarize report present answer explain describe document return show print display state give tell
    format save store write export log send share deliver publish archive repeat wait round count sort filter
    group merge combine split convert clean compute calculate ask decide conclude finish close approve save"""
)
"""Verbs of steps that serve any goal: getting things ready, looking, checking, saying what came out."""

_ACTIONS = {
    "read": """read load open fetch get retrieve view inspect look list show display query search find download browse
        scan lookup see consult access cat""",
    "write": "write save store append overwrite record export dump persist",
    "delete": "delete erase purge wipe unlink destroy remove",
    "send": "send email e-mail mail notify publish message forward submit announce broadcast inform invite tell post",
    "arithmetic": """add sum subtract multiply divide calculate compute double halve triple arithmetic calculator
        plus minus square math mathematical""",
    "statistics": "mean median average statistic deviation variance correlation regression maximum minimum percentile",
    "translate": "translate",
    "convert": "convert transform",
    "sort": "sort rank order arrange",
    "plot": "plot draw chart graph visualize visualise render sketch",
    "schedule": "schedule book reserve invite calendar appointment",
    "restart": "restart reboot reload start stop launch terminate kill",
    "resize": "resize crop rotate scale",
    "run": "run execute launch start test",
    "output": "echo return repeat say print output display show state tell unchanged",
}


def _by_stem(classes: dict[str, str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, members in classes.items():
        for word in members.split():
            found.setdefault(stem(word), set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


ACTIONS = _by_stem(_ACTIONS)
"""From the stem of a verb to the kinds of action it may stand for."""

_OPPOSITES = """
    ascending descending; asc desc; increase decrease; increasing decreasing;
    maximum minimum; max min; largest smallest; highest lowest;
    enable disable; activate deactivate; start stop; open close; lock unlock; encrypt decrypt; encode decode;
    compress decompress; compress extract; upload download; import export; install uninstall; attach detach;
    mount unmount; connect disconnect; subscribe unsubscribe; include exclude; allow deny; allow block;
    accept reject; approve reject; keep delete; keep remove; keep discard; hide show; expand collapse; lower raise;
    uppercase lowercase; upper lower; forward backward; inbound outbound; credit debit; buy sell; grant revoke;
    append prepend; push pull; lossy lossless; public private; horizontal vertical; add remove; create delete;
    insert delete; multiply divide; add subtract; mean median; daily weekly; weekly monthly; daily monthly;
    synchronous asynchronous; before after; first last; scale crop; archive delete; mute unmute; pin unpin
"""


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _OPPOSITES.split(";"):
        one, other = map(stem, pair.split())
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _opposites()
"""From a stem to the stems that say the contrary."""

SYNONYMS: tuple[frozenset[str], ...] = tuple(
    map(
        stems,
        (
            "add sum plus addition",
            "subtract minus subtraction deduct difference",
            "multiply multiplication double triple",
            "divide quotient division halve",
            "mean average",
            "max maximum largest highest biggest greatest",
            "min minimum smallest lowest least",
            "asc ascending increasing",
            "desc descending decreasing",
            "stdev deviation std",
            "bar bars column",
            "celsius centigrade",
        ),
    )
)
"""Groups of words that name the same choice of a tool."""
