"""What prompt injections say: the rules as data, for texts in the form of `disguises`.

A space in a rule stands for whatever separates two words. Every repetition is bounded, so that no
text makes a rule slow.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Family = Literal[
    "override",  # other instructions are to be ignored
    "role",  # the reader is to be somebody else
    "exfiltration",  # secrets are to be told or sent
    "jailbreak",  # limits are said to be lifted
    "agent",  # tools are to be used behind the user's back
    "delimiter",  # what only the frame of a conversation may say
    "markup",  # instructions a person does not see, images that carry data away
    "encoding",  # any of the others, as base64 or hexadecimal digits
    "persistence",  # instructions for later conversations
    "evasion",  # any of the others, spelt so that it is overlooked
]


def _some(count: int, words: str) -> str:
    """Up to so many of these words."""
    return f"(?: (?:{words})){{0,{count}}}"


def _any(count: int) -> str:
    """Up to so many words."""
    return f"(?: [a-z0-9]{{1,24}}){{0,{count}}}?"


class Rule(NamedTuple):
    """What a finding begins with, as alternatives that each begin with a letter, and the rest."""

    family: Family
    beginnings: str
    rest: str


_ORDERS = (
    "instructions?|prompts?|directions?|directives?|guidelines?|commands?|orders?|rules?"
    "|training|programming|guidance"
)
_TALK = "context|messages?|conversations?|text|content|polic(?:y|ies)|restrictions?|constraints?"
_BEFORE = "previous|previously|prior|above|preceding|earlier|foregoing|system|safety"
_FILLING = (
    "please|all|any|every|each|of|the|your|my|our|these|those|this|that|about|everything"
    "|completely|entirely|totally|simply|just|and|or|other|such"
)
_BETWEEN = f"{_FILLING}|{_BEFORE}|following|subsequent|given|user|developer|assistant|ethical|moral"
_IGNORE = (
    "ignore|disregard|forget|do not follow|do not obey|don t follow|don t obey"
    "|stop following|stop obeying|pay no attention to"
)
_TOLD = (
    "you (?:have been|were|have|had|ve been|are|got|received|learned|know|was)"
    "|(?:that )?(?:came|comes|come) before"
    "|(?:given|provided|said|written|told|stated|mentioned|received)"
    " (?:above|before|earlier|previously|so far|to you)"
)
_LIMITS = (
    "restrictions?|limits?|limitations?|filters?|filtering|rules?|guidelines?|constraints?"
    "|ethics|censorship|boundaries|safeguards?|guardrails?"
)
_SECRET = (
    "(?:entire |full |whole )?(?:conversation|chat (?:history|log))"
    "|system prompt|environment variables|everything you know"
    "|(?:all|every|any)(?: of)?(?: the| your| their)?(?: [a-z]{1,16}){0,2}?"
    " (?:passwords?|credentials|api keys?|secrets?|tokens?|private keys?|emails?|contacts)"
    "|the users?(?: s)? (?:[a-z]{1,16} )?"
    "(?:passwords?|credentials|api keys?|secrets?|tokens?|data|files|messages|emails?|contacts)"
)
_UNTOLD = (
    "(?:do not|don t|never|without)(?: ever)?"
    " (?:tell|mention|inform|notify|alert|ask|show|telling|mentioning|informing|notifying"
    "|alerting|asking|showing)"
)
_SET_ASIDE = "|".join(
    f"{verb} {number}"
    for verb in ("override", "bypass", "skip", "overlook", "neglect", "abandon", "ignoring")
    for number in ("all", "any", "every")
)
PRIOR = "previous|prior|above|preceding|earlier"
PROMPTS = "instructions?|prompts?|guidelines?"
_MODES = "dan|jailbreak|jailbroken|god|unrestricted|unfiltered|uncensored"

RULES: tuple[Rule, ...] = (
    # Override
    Rule(
        "override", _IGNORE, f"{_some(7, _FILLING)} (?:{_BEFORE}){_some(4, _BETWEEN)} (?:{_ORDERS})"
    ),
    Rule(
        "override",
        _IGNORE,
        f" (?:all|any|every|everything){_some(5, _FILLING)} (?:{_BEFORE}){_some(4, _BETWEEN)}"
        f" (?:{_TALK})",
    ),
    Rule(
        "override",
        _IGNORE,
        f"{_some(2, _FILLING)} (?:all|any|every)(?: of)?"
        f"(?: (?:the|my|these|those))? (?:your{_some(2, _BETWEEN)} (?:{_ORDERS}|{_LIMITS})"
        "|instructions|system prompts?)",
    ),
    Rule(
        "override",
        _IGNORE,
        f"{_some(4, _FILLING)} (?:{_ORDERS}|everything|anything|all|what|whatever)"
        f"{_some(3, 'that|which|of|the|was|were|is|has|been')} (?:{_TOLD})"
        "(?: (?:told|given|taught|been told|said))?",
    ),
    Rule(
        "override",
        _IGNORE,
        f"{_some(4, _FILLING)} (?:instructions|prompts?|directions|directives)"
        " (?:above|before this|so far|from before)",
    ),
    Rule(
        "override",
        _IGNORE,
        f"{_some(4, _FILLING)} (?:above|everything before this)(?: text)? (?:and|then|but)"
        "(?: instead)? (?:say|tell|write|print|output|respond|reply|translate|act|give|reveal|show"
        "|do)",
    ),
    Rule(
        "override",
        "override|bypass|overlook|neglect|discard|circumvent|abandon",
        f"{_some(3, 'all|any|every|of|please')} your{_some(3, _BETWEEN + '|original|initial')}"
        f" (?:{_ORDERS}|{_LIMITS})",
    ),
    Rule(
        "override",
        f"discard|{_SET_ASIDE}",
        f"{_some(4, _FILLING)} (?:{PRIOR}){_some(2, _BETWEEN)} (?:{PROMPTS})",
    ),
    Rule(
        "override",
        _IGNORE,
        "(?: please)? your (?:(?:own|initial|original) )?(?:instructions|directives|programming"
        "|system prompts?)",
    ),
    Rule(
        "override",
        "ignoriere|ignorieren sie|vergiss|vergesst|vergessen sie|missachte|missachten sie",
        "(?: bitte)?(?: (?:alle|all|deine|ihre|eure|samtliche|saemtliche)){1,2}"
        " (?:system)?(?:anweisung(?:en)?|instruktion(?:en)?|befehle)",
    ),
    Rule(
        "override",
        "ignoriere|ignoriert|ignorieren sie|vergiss|vergesst|vergessen sie|missachte"
        "|missachten sie|missachtet|beachte nicht|befolge nicht",
        _some(
            4, "bitte|alle|alles|die|den|das|deine|deinen|ihre|eure|meine|samtliche|saemtliche|jede"
        )
        + " (?:vorherig|vorig|bisherig|fruher|frueher|obig|vorangegangen|vorangehend|vorhergehend"
        "|ursprunglich|urspruenglich|obenstehend|zuvor gegeben|vorher gegeben)(?:e|en|er|es)?"
        + _some(3, "und|oder|system|anderen")
        + " (?:system)?(?:anweisung|instruktion|befehl|vorgabe|regel|aufforderung|prompt|richtlinie"
        "|hinweis|nachricht|anordnung)(?:en|e|s|n)?",
    ),
    Rule(
        "override",
        "ignore|ignorez|ignorer|oublie|oubliez|oublier|ne tiens pas compte|ne tenez pas compte"
        "|ne suis pas|ne suivez pas|fais abstraction|faites abstraction",
        _some(5, "toutes?|tous|tout|les?|la|l|des?|du|d|tes|vos|mes|ces")
        + " (?:precedentes? |anterieures? )?"
        "(?:instructions?|consignes?|directives?|ordres?|commandes?|regles?)"
        " (?:systeme )?(?:precedente?s?|anterieure?s?|prealables?|ci dessus|initiale?s?|recues?"
        "|donnees?|d avant|qui precedent)",
    ),
    Rule(
        "override",
        "ignorez|oublie|oubliez",
        _some(4, "toutes?|tous|les?|la|l|des?|tes|vos|mes|ces")
        + " (?:precedente?s?|anciennes?) (?:instructions?|consignes?|directives?|ordres?)",
    ),
    Rule(
        "override",
        "ignora|ignore|ignorad|ignoren|olvida|olvide|olvidad|olviden|descarta|descarte|desestima"
        "|no sigas|no siga|no hagas caso|haz caso omiso",
        _some(5, "por|favor|todas?|todos|todo|las?|los|el|de|del|a|tus|sus|mis|estas")
        + "(?: (?:anteriores|previas|previos))?"
        " (?:instruccion(?:es)?|indicacion(?:es)?|ordenes|reglas?|directivas?|comandos?)"
        " (?:del sistema )?(?:anterior(?:es)?|previas?|previos?|precedentes?|de arriba|iniciales"
        "|originales|recibidas|dadas)",
    ),
    # Role
    Rule(
        "role",
        "you are now",
        f" (?:{_MODES}|jailbroken|free (?:from|of)|no longer bound"
        f"|in (?:{_MODES}|developer|debug|admin|root) mode"
        f"|an?{_any(3)} (?:ai|assistant|chatbot|bot|llm|language model|gpt|hacker|pirate|persona))",
    ),
    Rule(
        "role",
        "you are no longer",
        " (?:bound|restricted|limited|an?(?: [a-z]{1,24}){0,2}? (?:ai|assistant|chatbot|model))",
    ),
    Rule(
        "role",
        "act as|act like|behave as|behave like|pretend to be|pretend you are|roleplay as"
        "|role play as|respond as",
        f"{_any(10)} (?:(?:without|no|free of|free from|ignoring|with no)(?: (?:any|all|your))?"
        f"(?: [a-z]{{1,16}})? (?:{_LIMITS})|unrestricted|unfiltered|uncensored|jailbroken)",
    ),
    Rule(
        "role", "system:", " (?:you are|you must|you will|ignore|your (?:task|role|instructions))"
    ),
    Rule(
        "role",
        "your new",
        " (?:role|task|instructions?|identity|persona|objective|goal|system prompt) (?:is|are)",
    ),
    # Exfiltration
    Rule(
        "exfiltration",
        "reveal|print|show|repeat|output|display|tell|leak|dump|give|expose|share|disclose|recite"
        "|write|what is|what are",
        f"{_some(7, 'me|us|out|back|all|of|the|full|entire|complete|exact|verbatim|and|word|for')}"
        "(?: your (?:(?:full|entire|complete|exact|original|own|current) ){0,2}"
        "(?:system|initial|hidden|secret|original|developer|internal) "
        "(?:prompts?|instructions?|messages?|rules|guidelines|directives)"
        "|(?: your)? (?:hidden|secret) (?:system )?(?:prompts?|instructions)"
        "|(?: your)? system prompts?"
        "| your (?:full|entire|complete|exact|original|initial) prompt)",
    ),
    Rule(
        "exfiltration",
        "repeat|print|output|recite",
        f"{_some(3, 'all|of|the|everything')} (?:words|text|everything) above"
        " (?:starting|beginning|verbatim|word)",
    ),
    Rule(
        "exfiltration",
        "send|post|upload|forward|transmit|exfiltrate|leak|submit|email|deliver|append",
        f"{_any(4)} (?:{_SECRET}){_any(8)} (?:to|at|into|via|in){_any(3)}[^a-z0-9]{{1,12}}https?://"
        "[^\\s\"'<>()]{1,300}",
    ),
    # Jailbreak
    Rule("jailbreak", "dan mode|do anything now|jailbreak mode|stay a dan", ""),
    Rule("jailbreak", "developer mode", " (?:is now |has been )?(?:enabled|activated|unlocked)"),
    Rule("jailbreak", "enter|enable|activate|entering|switch to|unlock", f" (?:{_MODES}) mode"),
    Rule("jailbreak", "you have been|you are|you ve been", " (?:jailbroken|freed from your)"),
    Rule(
        "jailbreak",
        "disable|deactivate|turn off|remove",
        f"{_some(2, 'all|any|of')} your"
        f"{_some(3, 'own|safety|content|ethical|moral|security|built|in')}"
        f" (?:{_LIMITS}|checks|protocols|training)",
    ),
    # Agent manipulation
    Rule(
        "agent",
        "call|use|invoke|run|execute|trigger",
        f"{_any(4)} (?:tool|function|api|command|plugin|shell|terminal|script|mcp server)"
        f"{_any(30)} {_UNTOLD}{_any(4)} users?",
    ),
    Rule(
        "agent",
        "do not|don t|never",
        "(?: ever)? (?:mention|disclose|reveal|report) "
        "(?:this|it|that|these|any of this|anything about this)"
        "(?: (?:instruction|instructions|message|text|step|action|request))? to the user",
    ),
    Rule(
        "agent",
        "do not|don t|never",
        "(?: ever)? (?:tell|inform|notify|alert) the user (?:about|of|that you)"
        "(?: (?:this|these|it|did|have|are|were|received|called))"
        "(?: (?:instructions?|message|step|action|request|tool))?",
    ),
    Rule(
        "agent",
        "keep",
        " (?:this|these|it)(?: (?:instructions?|message|action))?(?: a)?"
        " (?:secret|hidden|confidential) from the user",
    ),
    # Persistence
    Rule(
        "persistence",
        "from now on|from now onwards?|from this point on|from this point forward|from here on",
        "(?: (?:always|never|every time|respond only|answer only|reply only|obey)"
        "|(?: please)? you (?:must|will|should|shall|are to|have to)"
        " (?:always|never|only|act|respond|answer|reply|obey|behave|refer))",
    ),
    Rule(
        "persistence",
        "remember|store|save|keep|memorize|memorise",
        f" (?:this|these|that|the following){_any(4)} (?:for|in|across|throughout)"
        "(?: (?:all|every|any|each))?(?: (?:your|of your))? future"
        " (?:conversations?|sessions?|chats?|interactions?|requests?|responses?|answers?)",
    ),
    Rule(
        "persistence",
        "add|save|store|write|commit|remember",
        " (?:this|these|the following)(?: [a-z]{1,16}){0,3}? (?:to|in|into)"
        " your (?:long term |persistent |permanent )?memory",
    ),
    Rule(
        "persistence",
        "in all future|in every future|in any future|for all future|for every future",
        " (?:conversations?|sessions?|chats?|interactions?|responses?)"
        f"{_any(2)} (?:always|never|you must|ignore)",
    ),
)
