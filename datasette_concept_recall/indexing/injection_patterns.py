"""What texts are searched with: the rules for phrases, marks, and what gives any finding away.

All is for texts in the form of `disguises`. Every repetition is bounded, so that no text makes a
search slow.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from .injection_rules import PRIOR, PROMPTS, RULES, Family, Rule

_GAP = "[^a-z0-9]{1,64}"
_WORD_START, _WORD_END = "(?<![a-z0-9])", "(?![a-z0-9])"
_THEN = "[\\W_]{1,3}"

_UNSEEN = (
    r"(?:hidden\b(?<!\whidden)|display\s?:\s?none|visibility\s?:\s?hidden"
    r"|font-size\s?:\s?0|opacity\s?:\s?0(?![.\d])|width\s?:\s?0(?![.\d])|height\s?:\s?0(?![.\d]))"
)
"""How the tag of an element says that it is not shown."""

_STEMS: tuple[str, ...] = (
    *(
        "gn[o0]r",
        "g[a4]rd(?<=sr[e3]g[a4]rd)",
        "f[o0]rg[e3]t",
        "bey(?<=obey)",
        "do not follow",
        "don t follow",
    ),
    *("p following", "pay no att", "prompt", "guideline", "uctio(?<=nstructio)"),
    *(
        f"{verb}(?: (?:all|any|every|of|please)){{0,3}} your"
        for verb in ("verride", "bypass", "verlook", "glect", "discard", "cumvent", "bandon")
    ),
    *(
        f"{verb}(?: (?:all|any|of)){{0,2}} your"
        for verb in ("disable", "deactivate", "urn off", "move(?<=remove)")
    ),
    *("vergiss", "vergess", "missacht", "beachte", "befolg"),
    *("ublie", "compte", "uivez", "uis pas", "f(?:ais|aites) abstr"),
    *("vid(?<=olvid)", "cart(?<=descart)", "ma(?<=desestima)", "ga(?<=[^a-z0-9]siga)", "caso"),
    *("jailbr", "freed", "versation", "chat history", "chat log", "password", "credential", "cret"),
    *("pi key", "vate key", "ken(?<=token)", "mail(?<=email)", "contacts", "ything you"),
    *("pretend", "behave (?:as|like)", "play as", "pond as", "ct (?:as|like)"),
    *("your new", "you are no(?:w| longer)", "m: (?:you|ign)"),
    *("bove (?:start|begin|verb|word)", "vironment variab", "keep (?:this|these|it)"),
    "users?(?: s)? (?:[a-z]{1,16} )?(?:data|files|mess|email|cont|pass|cred|cret|tok)",
    *("veloper mode", "god mode", "dan mode", "y a dan", "un(?:restrict|filter|censor)"),
    *("ything now", "future (?:conv|sess|chat|inter|req|resp|answ)"),
    "your(?: (?:full|entire|complete|exact|original|own|current)){0,2}"
    " (?:system|initial|hidden|original|developer|internal)",
    "your(?: long term| persistent| permanent)? memory",
    "from (?:now|this|here)",
    *(
        f"{never}(?: ever)? (?:tell|mention|inform|notif|alert|ask|show|disclos|reveal|report)"
        for never in ("do not", "don t", "without", "ver")
    ),
    *("p[eiorsuv]{6}s(?<!previous)", "p[mopr]{4}t(?<!prompt)", "p[ior]{3}r(?<!prior)"),
    "f[egor]{4}t(?<!forget)(?<!forgot)",
    *map(_THEN.join, ("gnor", "gard", "forg", "promp", "youa", "bypa", "mode", "ythi", "veal")),
    *(
        r"<\|",
        "<</?sys",
        "</?s(?:ystem|tart_)",
        "<end_of",
        "<!--",
        r"<img\s[^<>?]{0,400}\?",
        r"\[/?inst\]",
        r"!\[[^\]\n]{0,200}\]\([^()\n?]{0,220}\?",
    ),
    r"##[#\s]{0,3}(?:system|assistant|human|instruction)",
    rf"<[a-z][a-z0-9]{{0,11}}\s[^<>]{{0,400}}?{_UNSEEN}",
)
"""What every finding contains, near its beginning if it is long, in letters that are rare.

A rule for phrases needs a stem for each way through it; a test generates phrases from all rules.
"""


def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression.replace(" ", _GAP))


def _by_first(expressions: Iterable[str]) -> str:
    """Any of the expressions, told apart by their first letter at first."""
    groups: dict[str, set[str]] = defaultdict(set)
    for expression in expressions:
        first = 2 if expression[0] == "\\" else 1
        groups[expression[:first]].add(expression[first:])
    return "|".join(f"{first}(?:{'|'.join(sorted(groups[first]))})" for first in sorted(groups))


VERB_STEMS = frozenset({"gnor", "gn0r", "gard", "g4rd", "forget", "f0rget", "forg3t", "f0rg3t"})
CLEAN_STEMS = frozenset({"prompt", "password", "pretend"})
"""Triggers near which words may be shuffled, and some that are no shuffled words themselves."""

TRIGGER = _compiled(_by_first(_STEMS))
"""The one test that every folded text is put to; what it finds nothing in is clean."""

_OR_NOT = r"[\W_]{0,3}"
_SMALL = "all|any|every|of|the|your|my|me|us|these|those|full"
PHRASE_RULES = (
    *RULES,
    Rule(
        "evasion",
        "ignore|disregard|forget|donotfollow|dontfollow",
        f"(?:{_OR_NOT}(?:{_SMALL})){{0,4}}{_OR_NOT}(?:{PRIOR})"
        f"(?:{_OR_NOT}(?:and|given|system)){{0,2}}{_OR_NOT}(?:{PROMPTS})",
    ),
    Rule(
        "evasion",
        "reveal|print|show|repeat|output|leak",
        f"(?:{_OR_NOT}(?:{_SMALL})){{0,4}}{_OR_NOT}your{_OR_NOT}"
        f"(?:system{_OR_NOT}prompt|(?:hidden|secret){_OR_NOT}(?:instructions|prompt))",
    ),
)
"""All rules for phrases; the last are for words that nothing visible need separate."""

_BEGINNINGS = [beginning for rule in PHRASE_RULES for beginning in rule.beginnings.split("|")]
_GLUED = f"(?={_SMALL}|{PRIOR})"
BEGINNING = _compiled(f"{_WORD_START}(?:{_by_first(_BEGINNINGS)})(?:{_WORD_END}|{_GLUED})")
"""Where a rule for phrases may apply."""

PHRASES: dict[str, list[tuple[Family, re.Pattern[str]]]] = defaultdict(list)
"""The rules for phrases, by the two letters they begin with."""

for _family, _beginnings, _rest in PHRASE_RULES:
    _rule = _compiled(f"(?:{_beginnings}){_rest}{_WORD_END}")
    for _letters in {beginning[:2] for beginning in _beginnings.split("|")}:
        PHRASES[_letters].append((_family, _rule))

SPACED = re.compile(rf"{_WORD_START}[a-z](?:[\W_]{{1,3}}[a-z]{_WORD_END}){{5,}}")
"""A run of single letters."""

SPACED_PHRASE = re.compile(
    "(?:ignore|disregard|forget|override|donotfollow|dontfollow|bypass)"
    "(?:all|any|every|of|the|your|my|these|those|this|that|everything|and){0,5}"
    "(?:previous|prior|above|preceding|earlier|system|safety|instructions?|prompts?|guidelines?"
    "|directives?)(?:and|system|given|or|previous|prior)?"
    "(?:instructions?|prompts?|directions?|directives?|guidelines?|commands?|orders?|rules?)?"
    "|(?:reveal|print|show|repeat|output|leak)(?:me|us)?(?:all|of|the|your|full|entire){0,4}"
    "(?:hidden|secret)?(?:systemprompt|systeminstructions|instructions)"
    "|youarenow(?:dan|an?(?:evil|unrestricted|unfiltered|ai))|doanythingnow|jailbreakmode"
    "|systemprompt|developermode(?:isnow)?(?:enabled|activated)|(?:dont|donot)telltheuser"
)
"""What a run of single letters must not say, without what is between them."""

_FRAME = (
    r"<\|(?:im_(?:start|end|sep)|system|user|assistant|tool|end|pad|endof[a-z_]{1,12}"
    r"|(?:start|end|begin)_[a-z_]{1,24}|eo[tms](?:_id)?|fim_[a-z]{1,8}|python_tag"
    r"|reserved[a-z0-9_]{1,32})\|>"
    r"|\[/?inst\]|<</?sys>>|</system>|</?system[-_ ](?:prompt|instructions?|messages?)>"
    r"|<(?:start|end)_of_turn>"
    r"|(?<![^\n])#{2,4} ?(?:system|assistant|human|instruction)(?: (?:prompt|message))? ?:"
)
_HIDDEN = rf"<(?P<tag>[a-z][a-z0-9]{{0,11}})\s[^<>]{{0,400}}?{_UNSEEN}[^<>]{{0,400}}>"
_IMAGE = (
    r"!\[[^\]\n]{0,200}\]\(\s{0,4}<?https?://[^\s()?]{1,200}\?[^()\n]{1,600}\)"
    r"|<img\s[^<>]{0,200}?src\s?=\s?[\"']?https?://[^\s<>?]{1,200}\?[^<>]{1,600}>"
)
MARKS = re.compile(
    rf"(?P<delimiter>{_FRAME})|(?P<comment><!--)|(?P<image>{_IMAGE})|(?P<hidden>{_HIDDEN})"
)
"""Marks in a folded text that are findings (``delimiter``), or are if more is true of them."""

CARRIES_DATA = re.compile(
    "[?&](?:conversation|prompt|history|chat|leak|exfil[a-z]{0,8}|stolen|secrets?|passwords?"
    "|credentials|memory)="
    r"|[?&][a-z_]{1,20}=[^&]{0,40}?[\[{<$][^&]{0,40}?(?:conversation|history|prompt|data|secret|user"
    "|message|summary|context|input|key|password)"
)
"""What an address says of an image that carries data away."""

_READER = (
    r"(?<![a-z0-9])(?:ais?|llms?|assistants?|chatbots?|language models?|chatgpt|gpt|copilot)"
    r"(?![a-z0-9])"
)
_DUTY = (
    r"(?<![a-z0-9])(?:must|always|never|do not|don'?t|instead|ignore|please|should|recommend|rate"
    r"|say|respond|answer|reply|send|mention|summari[sz]e|forward|delete)(?![a-z0-9])"
)
READER, DUTY = re.compile(_READER), re.compile(_DUTY)
"""Who is spoken to, and what of, where a person does not see it."""
