"""English words that say how something is asked, not what about.

A closed list by parts of speech, of the words that are met in questions about anything. Another
language, or a subject to which some of them belong, has another list: the configuration replaces
it.
"""

from __future__ import annotations


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


GENERAL_VERBS = _words(
    "go goes going gone went come comes coming came get gets getting got gotten give gives",
    "giving gave given take takes taking took taken make makes making made put puts putting",
    "keep keeps keeping kept bring brings brought use uses using used want wants wanting",
    "wanted need needs needing needed like likes liked liking try tries trying tried seem",
    "seems happen happens happened start starts started stop stops stopped turn turns turned",
    "set sets work works worked help helps helped end ends ended prefer prefers preferred",
    "preferring love loves loved hate hates hated enjoy enjoys enjoyed",
)
"""Verbs that take their meaning from their object. They are topical only when nothing else is, as
in "what do I want"."""

NOT_TOPICAL = GENERAL_VERBS | _words(
    # articles, determiners, quantifiers
    "a an the this that these those each every either neither both all any some no none such",
    "same other another much many more most less least few fewer several enough own half lot",
    "lots bit plenty",
    # personal, possessive, reflexive and indefinite pronouns
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him",
    "his himself she her hers herself it its itself they them their theirs themselves one",
    "ones oneself someone somebody something anyone anybody anything everyone everybody",
    "everything nobody nothing somewhere anywhere everywhere nowhere",
    # question words and relatives
    "what which who whom whose when where why how whatever whichever whoever whomever",
    "whenever wherever however",
    # prepositions and particles
    "about above across after against along among around as at before behind below beneath",
    "beside besides between beyond by despite down during except for from in inside into near",
    "of off on onto out outside over past per since than through throughout till to toward",
    "towards under until up upon via with within without",
    # conjunctions, negation, discourse
    "and or but nor so yet if unless because although though while whereas whether not also",
    "too only just even still then else please thanks ok okay yes well hey hi hello maybe",
    "perhaps really actually anyway kindly",
    # auxiliaries and modals, with what is left of contractions
    "be am is are was were been being do does did doing done have has had having will would",
    "shall should can could may might must ought cannot gonna gotta s t d m ll re ve don",
    "doesn didn isn aren wasn weren haven hasn hadn won wouldn shouldn couldn ain let lets",
    # verbs of knowing, saying, asking and looking up: what is done with a memory
    "know knows knew known think thinks thinking thought believe remember remembers remind",
    "reminds recall recalls forget forgot tell tells telling told say says saying said ask",
    "asks asking asked mean means meant show shows showed find finds finding found look looks",
    "looking looked see sees seeing saw seen check call calls called mention mentions",
    "mentioned list suggest recommend feel feels feeling felt guess wonder wonders hope hopes",
    # empty nouns, and the one whom all records are about
    "user users thing things stuff way ways kind kinds sort sorts type types name names fact",
    "facts info information detail details question answer idea case person people opinion",
    "opinions view views",
    # time and place in general, frequency
    "now today tonight tomorrow yesterday soon later lately recently recent currently current",
    "ago again already ever never always often usually normally generally sometimes once last",
    "next first time times day days week weeks month months year years here there away back",
    # judgement and degree
    "good better best bad worse worst right wrong nice great fine very quite rather almost",
    "exactly new old big small long",
)
"""Words that rank what is found, but admit nothing. Single letters are what is left of "user's"."""
