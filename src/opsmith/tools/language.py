"""The tool `language`: what the target's own texts say of one construct."""

from __future__ import annotations

from pydantic import Field

from opsmith.agents.manual import Manual, find_manual
from opsmith.agents.similarity import score_documents
from opsmith.targets import Target
from opsmith.targets.protocols import PROPOSER, Documented
from opsmith.tools import ToolContext, ToolOutcome, ToolResult
from opsmith.tools.arguments import ToolArguments
from opsmith.tools.sections import cut_sections
from opsmith.tools.wording import bound_text

MOST_SECTIONS = 3  # of one answer
SHORTEST_ROOT = 4  # characters of a word that is looked for within others
MOST_TOPICS = 6_000  # characters of the list of topics


class TopicArguments(ToolArguments):
    """What is looked up."""

    topic: str = Field(
        default="",
        max_length=200,
        description="A construct, rule or pattern of the language, such as a primitive's name; empty: what there is.",
    )


class LanguageTool:
    """Looks up the language that programs are written in."""

    name = "language"
    description = (
        "Look up a construct, rule or usage pattern of the language that programs are written in: its exact rule, and "
        "an example where there is one. An empty topic lists all topics. It knows nothing of the task."
    )
    arguments = TopicArguments

    async def run(self, context: ToolContext, arguments: TopicArguments) -> ToolResult:
        sections = list_sections(context.target, context.manual)
        topics = bound_text("\n".join(f"- {name}" for name in sections), MOST_TOPICS)
        if not arguments.topic.strip():
            return ToolResult(f"Topics:\n{topics}")
        names = find_topics(arguments.topic, sections)
        if not names:
            text = f"Nothing is written on {arguments.topic.strip()!r}. Topics:\n{topics}"
            return ToolResult(text, ToolOutcome.REFUSED)
        return ToolResult("\n\n".join(f"## {name}\n{sections[name]}" for name in names))


def list_sections(target: Target, manual: Manual | None = None) -> dict[str, str]:
    """All that is written on a language, by topic: its base prompt cut into sections, and what the target and its
    manual add. `manual`: None: the language's own."""
    sections = cut_sections(target.base_prompt(PROPOSER) or "")
    if isinstance(target, Documented):
        sections |= {f"{name} (rule)": text for name, text in target.describe_constructs().items()}
    manual = manual or find_manual(target)
    if manual is not None and manual.choice != "none":
        sections |= {f"{quotation.title} (manual)": quotation.text for quotation in manual.passages.quotations}
    return sections


def find_topics(query: str, sections: dict[str, str]) -> list[str]:
    """The topics whose name has all words of the query, the shortest first, or else the likeliest by their texts, or
    those whose text holds a word of it in another form."""
    words = _split_words(query.strip().removeprefix("step."))
    named = [name for name in sections if words and set(words) <= set(_split_words(name))]
    if named:
        return sorted(named, key=len)[:MOST_SECTIONS]
    scores = score_documents(" ".join(words), [text.casefold() for text in sections.values()])
    likely = sorted(zip(scores, sections, strict=True), key=lambda pair: -pair[0])
    if likely and likely[0][0] > 0:
        return [name for score, name in likely if score > 0][:MOST_SECTIONS]
    roots = [word for word in words if len(word) >= SHORTEST_ROOT]
    return [name for name, text in sections.items() if any(root in text.casefold() for root in roots)][:MOST_SECTIONS]


def _split_words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text.casefold()).split()
