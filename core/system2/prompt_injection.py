"""Prompt injection: instructions to a model in text that others wrote, or that an agent passes on (REQ-113).

The rules match words and their positions, never the meaning of a sentence. Four things are flagged: text that is hidden
from people; text that imitates the conversation's own markup; stock phrases that override a model's instructions;
and a demand for one of the _ACTS, if the passage addresses a model or makes several demands. A demand is a verb in the
place of an imperative: not after a subject of its own, a negation, or a reporting word.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain

from aeon_core.escape import escape_controls

MAX_EXCERPT = 160
"""How much of a sentence a finding shows, in characters."""

_MOD = (
    r"(?:(?:the|all|any|these|those|this|that|every|each|our|its|your|my|further|of|other|usual|normal"
    r"|remaining)\s+){0,5}"
)
_EARLIER = (
    r"(?:previous|prior|earlier|above|preceding|foregoing|original|existing|system|former|initial|safety|security"
    r"|ethical|(?:developer|user)(?:['’]s)?)"
)
_RULES = (
    r"(?:instructions?|prompts?|rules?|directions?|directives?|guidelines?|constraints?|orders|guardrails?|programming"
    r"|protocols?|restrictions?|commands?|safeguards?|limitations)\b"
)
_YOURS = r"your\s+(?:\w+\s+){0,2}"

_ELSEWHERE = (
    # Spanish, Portuguese, French, Italian, German, Dutch, Polish and Czech.
    r"(?:ignor(?:a|e|ez|iere|iert|ieren\s+sie|eer"
    r"|uj|ujcie|ujte)|z?ignoruj|negeer|olvida|oublie|oubliez|dimentica|esque[çc]a"
    r"|vergiss|vergeet|zapomnij|zapome[ňn])\s+(?:[^\s.;:]+\s+){0,4}?(?:"
    r"(?:instrucciones|instru[cç][oõ]es|instructions|consignes|istruzioni|reglas|regras|r[èe]gles|regole)\s+"
    r"(?:anteriore?s|previas|pr[ée]c[ée]dentes|precedenti)"
    r"|(?:vorherigen|bisherigen|fr[üu]heren|vorige|eerdere|poprzednie|p[řr]edchoz[íi])\s+"
    r"(?:anweisungen|instruktionen|regeln|instructies|instrukcje|polecenia|instrukce|pokyny)"
    r"|(?:tus|suas|tes|vos|tue|deine|ihre|je)\s+(?:instrucciones|instru[cç][oõ]es|instructions|consignes"
    r"|istruzioni|reglas"
    r"|regras|r[èe]gles|regole|anweisungen|regeln|richtlinien|instructies))\b"
    # Russian and Ukrainian, Arabic, Chinese, Japanese, Korean.
    r"|(?:(?:про)?игнорируй(?:те)?|ігноруй(?:те)?|забудь(?:те)?)\s+(?:[^\s.;:]+\s+){0,2}?"
    r"(?:предыдущие|прежние|попередні|свои|твои|ваши)\s+(?:инструкци|інструкці|указания|правила)"
    r"|تجاهل\s+(?:جميع\s+|كل\s+)?(?:التعليمات|الأوامر|القواعد)\s+السابقة"
    r"|(?:忽略|无视|無視|忘记|忘記)[^。,\n]{0,6}(?:之前|以前|先前|上述|上面|以上)[^。,\n]{0,6}(?:指令|指示|提示|规则|規則|设定|設定)"
    r"|(?:以前|これまで|上記)の[^。,\n]{0,6}(?:指示|命令)を(?:すべて)?無視し"
    r"|이전(?:의)?\s+(?:모든\s+)?(?:지침|지시|명령)\w*\s+무시(?:하|해)"
)
"""The best-known override, "ignore your previous instructions", in other languages."""


def _folded_patterns(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Compile patterns for `_folded` text: without IGNORECASE, the search skips what no alternative begins with.

    It can if all of a pattern's alternatives begin with a plain character.
    """
    return tuple(map(re.compile, patterns))


INSTEAD = "sets a model's instructions aside"
_INSTEAD = _folded_patterns(
    rf"(?:ignore|disregard|forget|override|overrides|abandon|discard|neglect|bypass|stop\s+following"
    rf"|do\s+not\s+(?:follow|obey))\s+"
    rf"(?:{_MOD}(?:{_EARLIER}\s+){{1,2}}(?:{_RULES}|messages?\b|tasks?\b|ones\b|context\b(?!\s+(?!and\b)\w))"
    rf"|{_YOURS}(?:{_RULES}|tasks?\b|safety\b|training\b)|(?:all|any)\s+(?:of\s+)?(?:the\s+|your\s+)?{_RULES}"
    rf"|{_MOD}{_RULES}\s+(?:above|before|given|you)\b|the\s+above\s*(?:[.,;!]|and\b|\Z)|(?:{_RULES}|everything)\s*(?:[.,;!]|and\b|\Z)"
    r"|(?:everything|all|anything|what(?:ever)?)\s+(?:that\s+)?(?:you\s+were|you\s+have\s+been|you['’]ve\s+been|came"
    r"|was\s+said|i\s+said|above|before)\b)",
    r"from\s+now\s+on,?\s+you\s+(?:are|will|must|should|only)\b"
    r"|you\s+are\s+(?:now|no\s+longer)\s+(?:an?\s+|in\s+)?(?:\w+\s+){0,2}?(?:ai|assistant|agent|model|bot|chatbot|dan"
    r"|unrestricted|jailbroken|bound|restricted|limited|developer\s+mode|hacker)\b"
    r"|(?:pretend|act\s+as\s+if|imagine)\s+(?:that\s+)?you\s+(?:are|were|have|had)\s+(?:no|not|an?\s+(?:unrestricted"
    r"|evil))\b"
    r"|you\s+are\s+(?:dan|an?\s+(?:ai|model|assistant)\s+(?:with(?:out)?\s+(?:no\s+)?(?:restrictions|rules|limits"
    r"|filters)))\b"
    r"|your\s+(?:new|real|actual|true)\s+(?:\w+\s+)?(?:instructions?|directive|task|role|goal|objective|mission|purpose|job)\s+"
    r"(?:is|are|will)\b"
    rf"|your\s+{_EARLIER}\s+{_RULES}\s+(?:are|were)\s+(?:now\s+)?(?:void|cancel\w+|obsolete|revoked)\b"
    rf"|(?:reveal|print|repeat|show|output|display|disclose|leak|tell\s+me|give\s+me"
    rf"|summari[sz]e)\s+(?:me\s+)?(?:\w+\s+){{0,3}}?"
    rf"(?:your\s+(?:\w+\s+){{0,2}}?(?:prompt|instructions|rules|guidelines)|(?:hidden|initial|secret|complete|full|the"
    rf"|entire)\s+(?:system\s+)(?:prompt|instructions|message)"
    rf"|(?:hidden|initial|secret)\s+(?:prompt|instructions))\b|what\s+(?:is|are|was"
    rf"|were)\s+your\s+(?:\w+\s+){{0,2}}?(?:prompt|instructions)\b"
    r"|(?:repeat|print|output)\s+(?:everything|the\s+(?:text|words))\s+(?:above|before)\b",
    _ELSEWHERE,
)

IMITATES = "imitates chat markup"
_MARKS = re.compile(
    r"<\|[a-z_]{2,20}\|>|\[/?INST\]|<</?SYS>>|</?(?:system|assistant)[-_](?:prompt|reminder|message"
    r"|instructions?)s?\b[^>]*>|</?(?:tool_results?|function_results?|user_query)>|\[CONTEXT SUMMARIZED\]"
    r"|(?m:^\W{0,8}(?:(?:new\s+)?system|admin|developer)\s+(?:override|prompt|message|instructions?|notice|update)"
    r"(?:\s+(?:to|for)\s+(?:the\s+|all\s+)?(?:AI\s+)?\w+)?\s*:)"
    r"|(?m:^\W{0,8}(?:hidden|secret)\s+instructions?\s*:)"
    r"|(?m:^\W{0,8}(?:new|updated|hidden|secret|real|important)\s+(?:system\s+)?instructions?\s+(?:for"
    r"|to)\s+(?:the\s+)?(?:AI|agents?|assistants?|models?)\b)"
    r"|(?m:^\W{0,4}[\[{]+\s*(?-i:[A-Z]*SYSTEM|JAILBREAK|OVERRIDE|INSTRUCTIONS?|ADMIN)\b[^\]}\n]{0,60}[\]}])"
    r"|(?m:^\W{0,8}(?-i:INSTRUCTIONS?|OVERRIDE)\s*:)"
    r"|(?m:^\W{0,8}(?:end|begin|start)\s+(?:of\s+)?(?:system\s+)?(?:prompt|instructions?)\W*$)",
    re.IGNORECASE,
)

_SECRETS = (
    r"(?:api[\s_-]?keys?|secrets?|credentials?|(?:access\s+|auth\s+|api\s+|session\s+)?tokens?|passwords?"
    r"|private\s+keys?|ssh\s+keys?|cookies|[\w/.-]*\.env\b|env(?:ironment)?\s+variables?|~?/?\.ssh\b|id_rsa|\.aws\b"
    r"|chat\s+history|conversation(?:\s+history)?|source\s+code)"
)
_GUARD = r"(?:security|safety|sandbox(?:ing)?|permissions?|authori[sz]ation|approval|confirmation|validation|review)"
_CHECK = (
    r"(?:checks?|reviews?|controls?|scans?|scanning|gates?|tests?|testing|validations?|polic(?:y|ies)|measures?"
    r"|restrictions?|rules?|guards?|guardrails?|filters?|hooks?|prompts?|requirements?|steps?)"
)
_PEOPLE = r"(?:users?|humans?|people|person|developers?|operators?|anyone|anybody|owners?|maintainers?|reviewers?|them)"

RULES_FILE = "changes CLAUDE.md"
SKIPS = "skips or bypasses security"
_ACTS = {
    kind: _folded_patterns(text)
    for kind, text in {
        SKIPS: rf"(?:skip|bypass|circumvent|disable|ignore|omit|suppress|evade|turn\s+off"
        rf"|switch\s+off)\s+{_MOD}(?:{_GUARD}[\s-]+{_CHECK}|(?:security|authori[sz]ation)\b)",
        "keeps something from people": rf"(?:(?:do\s+not|don['’]t|never)\s+(?:mention|tell|inform|notify|alert"
        rf"|reveal|disclose|report|show|ask|warn|say)\b(?:\s+[\w'’]+){{0,6}}?\s+(?:{_PEOPLE}|this|these|that\s+you"
        rf"|summary|it)\b|(?:hide|conceal)\s+(?:this|these|it|the)\b[^.]*\bfrom\s+(?:the\s+)?{_PEOPLE}"
        rf"|without\s+(?:telling|asking|informing|notifying|mentioning|alerting)\b)",
        "passes secrets on": rf"(?:send|post|upload|e-?mail|exfiltrate|include|print|output|reveal|share|leak|copy"
        rf"|paste|append|forward|encode|transmit|report|read|collect|embed|export|write|cat"
        rf"|dump)\s+(?:[^\s.;]+\s+){{0,6}}?[\"'`(]{{0,2}}{_SECRETS}",
        "dictates a verdict": r"(?:begin|start|end|finish)\s+(?:your|every|each)\s+(?:\w+\s+)?"
        r"(?:answers?|responses?|replies|reply|messages?|summary)\s+with\b"
        r"|(?:approve|accept|merge)\s+(?:this|the|all|every|any)\s+(?:\w+\s+)?(?:change|pull|pr|merge|commit|code|request"
        r"|diff|patch)|(?:mark|report|say|state|claim|conclude|respond|answer|reply|declare|rate|score|return|signal"
        r"|write(?!\s+(?:clean|complete|passing)\b)|set(?!\s+up\b))\s+(?:[^\s.;:]+\s+){0,7}?(?:[^\s.;]+:\s+)?[\"'`]?"
        r"(?:approved?|pass(?:es|ed|ing)?|safe|secure|no\s+(?:\w+\s+)?(?:issues|vulnerabilit\w+|blockers"
        r"|problems|findings)"
        r"|success(?:ful)?|lgtm|clean|compliant|complete)\b",
        "demands obedience": r"(?:follow|obey|execute|carry\s+out|comply\s+with|prioriti[sz]e|treat"
        r"|adopt)\s+(?:[^\s.;]+\s+){0,3}?(?:these|this|the\s+following|following|my|below|hidden"
        r"|embedded)\b(?:\s+[\w-]+){0,3}?\s*(?:instructions?|directives?|steps|commands?|orders|rules?|text|note|as\b)",
        RULES_FILE: r"(?:modify|edit|change|update|rewrite|overwrite|alter|delete|remove|replace|append|add"
        r"|write|insert|put)\s+(?:[^\s;:]+\s+){0,6}?[\"'`(]{0,2}(?:[\w.-]*/)*claude\.md\b",
        "escalates privileges": r"(?:escalate|elevate)\s+(?:\w+\s+){0,3}privileges?\b|(?:run|execute|act|operate"
        r"|continue|start|use|prefix|invoke|retry)\s+(?:[^\s,;:]+\s+){0,5}?(?:as\s+(?:the\s+)?(?:root|super-?user"
        r"|admin(?:istrator)?)\b|[\"'`(]{0,2}sudo\b)|sudo\s+\S",
        "runs or fetches something": r"(?:run|execute|eval|curl|wget|fetch|download|install|open|visit|pipe)\s+"
        r"[^\n;]{0,100}?(?:https?://|\|\s*(?:ba|z)?sh\b|base64|the\s+following\b|this\s+command"
        r"|commands?\s+(?:below|above|in))",
        "destroys or publishes": r"(?:delete|remove|erase|wipe|drop|destroy|overwrite|truncate|rm)\s+(?:-rf?\b"
        r"|(?:all|every|everything)\b|the\s+(?:\w+\s+)?(?:tests?|repository|repo|database|branch|history|files?|folder)\b)"
        r"|(?:force-)?push\s+(?:\w+\s+){0,3}?(?:directly|straight|to\s+(?:the\s+)?(?:main|master))"
        r"|(?:commit|merge|publish|deploy)\s+(?:\w+\s+){0,3}?(?:without|directly|straight)",
    }.items()
}
"""What injected text demands, each as a verb and its object."""
_GRAVE = frozenset(list(_ACTS)[:5])
"""Acts so rare in manuals that two of them in one passage are no coincidence."""
_PASSED_ON = (
    *_ACTS[SKIPS],
    *_folded_patterns(
        r"(?:modify|rewrite|overwrite|alter)\s+(?:[^\s;:]+\s+){0,2}?[\"'`(]{0,2}claude\.md\b",
        r"(?<!to )(?:escalate|elevate)\s+(?:\w+\s+){0,3}privileges?\b",
    ),
)
"""What an agent has no reason to ask of whoever reads its message."""

INJECTION_PATTERNS = (INSTEAD, IMITATES, "hides text", *_ACTS)
"""The kinds of findings: what the text does."""

_AGENT = r"(?:agents?|assistants?|models?|bots?)"
_ADDRESS = re.compile(
    rf"\b(?:AI|LLM|language|foundation)[\s-]+(?:coding\s+|code\s+)?(?:{_AGENT}|tools?|systems?|reviewers?)\b"
    rf"|\b(?:coding|automated|autonomous|code[\s-]review)\s+{_AGENT}\b|\b(?:LLMs|AIs|chatbots?)\b"
    r"|\b(?:Claude|ChatGPT|GPT-?\d\w*|Copilot|Codex|Gemini|Cursor)\b(?!\.md|\s+Code\b|['’]s)"
    rf"|\b(?:dear|hey|hi|hello|attention|note\s+to|message\s+(?:to|for))\s+(?:all\s+|any\s+|the\s+)?(?:AI|LLM|{_AGENT})\b"
    rf"|(?m:^\W*(?:(?:to\s+)?(?:the\s+|any\s+|all\s+)?(?:AIs?|LLMs?|{_AGENT})|(?-i:SYSTEM))\s*[,:])"
    r"|(?-i:<IMPORTANT>)|\bif\s+an\s+(?:AI|LLM)\b|\b(?:if\s+you\s+are|as)\s+an?\s+(?:AI|LLM|agent|assistant|model|bot|language)\b"
    rf"|\b{_AGENT}\s+(?:reading|processing|analy[sz]ing|reviewing|parsing|that\s+reads?)\b",
    re.IGNORECASE,
)
_PRODUCT = re.compile(
    r"\bClaude\b(?!\s*:)(?<!hey Claude)(?<!dear Claude)(?!(?<=^Claude),)", re.IGNORECASE | re.MULTILINE
)
"""The product's name, unless it addresses the model."""
_DIRECTED = re.compile(
    r"(?:\A|[,;:()\[\]{}>…–—\"'`“‘«*。、请請]|\s[-–—]|\b(?:please|kindly|por\s+favor|per\s+favore"
    r"|s['’]il\s+(?:te|vous)\s+pla[îi]t"
    r"|bitte|alstublieft|prosz[ęe]|пожалуйста|now|then|and|or|also|just|always|first|next|instead|so|but"
    rf"|to|must|should|\w+ly)|\b(?:you|{_AGENT}|AIs?|LLMs|Claude|Copilot|reviewers?|sentinels?|teams?|every(?:one|body))"
    r"(?:\s+(?:now|shall|will|can|may|do)){0,2})\s*\Z",
    re.IGNORECASE,
)
"""What may precede an imperative."""
_TAKEN_BACK = re.compile(
    # The writer does it, or did.
    r"\b(?:I|we|I['’](?:ll|ve|m|d)|we['’](?:ll|ve|re|d)|let\s+me|let\s+us|let['’]s)\b[^.!?]{0,80}\Z"
    # It must not be done.
    r"|(?:\b(?:not|never|cannot|nobody|no\s+one|nor|neither|rather\s+than|instead\s+of|avoid|refus\w+|declin\w+)|n['’]t)\b"
    r"(?!\s+(?:hesitate|forget|fail|worry|only|ask))(?:\s+[^\s,;:]+){0,4}\s*\Z"
    # It is prevented, possible, asked about or discussed, or somebody else does it.
    r"|\b(?:prevent\w*|block\w*|detect\w*|reject\w*|forbid\w*|flag\w*|guard\w*|protect\w*|risks?|threats?|against|warn\w*"
    r"|den(?:y|ies|ied)|resist\w*|attempt\w*|tr(?:y|ies|ied|ying)|ways?|ab(?:le|ility)|possible|allow\w*|let\w*|enabl\w+"
    r"|permit\w*|whether|how|why|what|used|such\s+as|like|e\.g\.|examples?|patterns?|phrases?|injections?|attack\w*"
    r"|anyone|someone|who|which|they|it|users?|clients?|scripts?|code|commands?)\b"
    r"(?:\s+(?!(?:you|please|must|should|now|then)\b)[^\s,;:]+){0,6}[\s\"'`“‘(:]*\Z",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:say(?:s|ing)?|said|reads?|contain\w*|match\w*|detect\w*|flag\w*|like|such\s+as|e\.g\.|examples?|includ\w*"
    r"|found|embedded|quot\w*|phrase\w*|strings?|texts?|treated|uses|tells?|claims?|asks?|instructs?|tries)\b",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"[\"'`“”‘’«»(]\s*\Z")
_MAX_REPORT = 1_000
"""How far before a hit a reporting word may be, in characters: a long line has many hits."""
_ON_CONDITION = re.compile(
    r"\s+(?:if|when|unless|in\s+case)\s+(?:you|your|using|the|this|it|on|there)\b", re.IGNORECASE
)


def scan_for_injection(text: str, *, passed_on: bool = False) -> list[str]:
    """Return what in the text looks like an instruction to a model: one line for each kind, with an excerpt.

    The lines are safe to show; an empty list means nothing was found. Emphasis marks, invisible characters and line
    breaks are ignored. `passed_on` means that an agent wrote it for others to act on: there, a demand to skip security,
    to modify CLAUDE.md or to escalate privileges is flagged even on its own.
    """
    found: dict[str, str] = {}
    if hidden := _tag_text(text):
        found["hides text"] = f"hides text in invisible characters: {_excerpt(hidden)!r}"
    plain = _plainly(text)
    for passage, is_hidden in (*_passages(plain), *((decoded, True) for decoded in _decoded(plain))):
        for kind, sentence in _demands(passage, is_hidden=is_hidden, passed_on=passed_on):
            found.setdefault(kind, f"{kind}: {_excerpt(sentence)!r}")
    return list(found.values())


def _demands(passage: str, *, is_hidden: bool, passed_on: bool) -> list[tuple[str, str]]:
    """Return the kind and the sentence of each finding in a passage; people do not see one that `is_hidden`."""
    sentences = [(each, _folded(each)) for each in _sentences(passage)]
    mark = next((hit for hit in _MARKS.finditer(passage) if not _is_reported(hit)), None)
    certain = [(IMITATES, _line_of(passage, mark))] if mark is not None else []
    certain += [(INSTEAD, each) for each, text in sentences if _matches(_INSTEAD, text, is_condition_free=True)]
    acts = [(kind, each) for each, text in sentences for kind, patterns in _ACTS.items() if _matches(patterns, text)]
    kinds = {kind for kind, _ in acts}
    grave = kinds & _GRAVE
    is_addressed = bool(kinds) and _ADDRESS.search(passage) is not None
    if kinds == {RULES_FILE}:
        # Text about CLAUDE.md names the product anyway, so the name alone addresses nobody.
        is_addressed = _ADDRESS.search(_PRODUCT.sub("", passage)) is not None
    is_demanded = (
        (certain or is_addressed or len(grave) > 1)
        or (is_hidden and grave)
        or (SKIPS in grave and len(kinds) > 1)
        or (passed_on and any(_matches(_PASSED_ON, text) for _, text in sentences))
    )
    return certain + (acts if is_demanded else [])


def _folded(text: str) -> str:
    """Return the text in lower case, with as many characters; a dotless i is no disguise."""
    return text.translate(_LETTERS_I).lower()


def _matches(patterns: Iterable[re.Pattern[str]], sentence: str, *, is_condition_free: bool = False) -> bool:
    for hit in chain.from_iterable(pattern.finditer(sentence) for pattern in patterns):
        before = sentence[max(0, hit.start() - 300) : hit.start()]
        if _DIRECTED.search(before) is None or _TAKEN_BACK.search(before) or _is_reported(hit):
            continue
        if is_condition_free and _ON_CONDITION.match(sentence, hit.end()):
            continue
        return True
    return False


def _is_reported(hit: re.Match[str]) -> bool:
    """Return whether a hit is in quotes after a reporting word in the same line."""
    line = hit.string[max(0, hit.start() - _MAX_REPORT) : hit.start()].rpartition("\n")[2]
    return _QUOTE.search(line) is not None and _REPORTS.search(line) is not None


def _line_of(text: str, hit: re.Match[str]) -> str:
    end = text.find("\n", hit.end())
    return text[text.rfind("\n", 0, hit.start()) + 1 : end if end >= 0 else len(text)].strip()


_LABEL = re.compile(r"\s*(?:(?:#{1,6}|//+|--|/?\*+/?|[-+•>|%;]+|\d{1,3}[.)]|\[[ xX]\]|<!--|\[//\]:\s*#\s*[(\"'])\s*)*")
_ITEM = re.compile(r"\n(?=\s*(?:[-*+•]|\d{1,3}[.)])\s)")
_ENDS = re.compile(r"(?<=[.!?])[\"'`”’)]*\s+|\s*\|\s*")
_HIDDEN = re.compile(r"<!--(.*?)(?:-->|\Z)|^\[//\]:\s*#\s*[(\"'](.*?)[)\"']\s*$", re.DOTALL | re.MULTILINE)
_BLANK = re.compile(r"\n\s*\n")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,2000}")
_MIXED = re.compile(r"\b(?=\w*[A-Za-z])(?=\w*[\u0400-\u04ff])\w+")
_LATIN = str.maketrans("аеорсухіјАВЕКМНОРСТХІЈ", "aeopcyxijABEKMHOPCTXIJ")
"""Cyrillic letters that look like Latin ones."""
_LETTERS_I = str.maketrans("\u0130\u0131", "ii")


def _passages(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the passages hidden from people, then the paragraphs of the rest, each with whether it is hidden.

    A paragraph that ends in a colon is joined with the next one.
    """
    for hidden in _HIDDEN.finditer(text):
        yield hidden[1] or hidden[2] or "", True
    opening = ""
    for block in _BLANK.split(_HIDDEN.sub("\n\n", text)):
        whole = f"{opening}\n{block}" if opening else block
        opening = whole if block.rstrip().endswith(":") and not opening else ""
        if whole.strip() and not opening:
            yield whole, False
    if opening:
        yield opening, False


def _sentences(text: str) -> list[str]:
    """Return the sentences of a passage, without the list, quote and comment marks before them."""
    items = _ITEM.split(text)
    plain = ("\n".join(_LABEL.sub("", line, count=1) for line in item.split("\n")) for item in items)
    return [" ".join(part.split()) for item in plain for part in _ENDS.split(item) if part.strip()]


def _plainly(text: str) -> str:
    """Return the text as a reader sees it: normalized, without invisible characters and emphasis marks."""
    normal = unicodedata.normalize("NFKC", re.sub(r"\r\n?", "\n", text))
    invisible = [ord(char) for char in set(normal) if unicodedata.category(char) == "Cf"]
    seen = normal.translate(dict.fromkeys(invisible)) if invisible else normal
    seen = _MIXED.sub(lambda word: word[0].translate(_LATIN), seen)
    return re.sub(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}|(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)|~~", "", seen)


def _decoded(text: str) -> Iterator[str]:
    """Yield the texts that are hidden in base64."""
    for found in _BASE64.finditer(text):
        with suppress(ValueError):
            decoded = base64.b64decode(found[0] + "=" * (-len(found[0]) % 4)).decode("ascii")
            if decoded.replace("\n", " ").isprintable():
                yield decoded


def _tag_text(text: str) -> str:
    """Return text in tag characters, which are invisible, without those that make up regional flags."""
    tags = re.sub("\U0001f3f4[\U000e0020-\U000e007f]+", "", text)
    return "".join(chr(ord(char) - 0xE0000) for char in re.findall("[\U000e0020-\U000e007e]", tags))


def _excerpt(text: str) -> str:
    shown = escape_controls(" ".join(text.split()))
    return shown if len(shown) <= MAX_EXCERPT else f"{shown[:MAX_EXCERPT]}…"
