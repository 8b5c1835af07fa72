"""What the shipped Markdown grammar calls the parts of a text, and what a parser of CommonMark (markdown-it-py) makes of it."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

import maskwright as mw
from maskwright.check.grammars import compile_for_bytes
from maskwright.compiling.shipped import shipped_grammar
from maskwright.compiling.symbols import Symbols

Structure = dict[str, list[tuple[str, ...]]]
LEVELS = {
    "bullet": 1,
    "outer_bullet": 1,
    "numbered": 1,
    "parenthesised": 1,
    "bullet_2": 2,
    "bullet_3": 2,
    "bullet_4": 3,
}
INLINE = {
    "EMPHASIS": "em",
    "UNDERLINE": "em",
    "TEXT_UNDERLINE": "em",
    "FIRST_UNDERLINE": "em",
    "long_link": "link",
    "STRONG": "strong",
    "strong": "strong",
    "link": "link",
    "image": "image",
}
NAMES = [
    *LEVELS, *INLINE, "heading", "fence", "fence_2", "fence_3", "quote", "STARS", "dashes", "CODE", "LONG_CODE", "underlined", "DEFINITION", "paragraph", "HTML", "TAG_BLOCK", "COMMENT",
]  # fmt: skip


def of_parser(text: str) -> Structure:
    """By kind, in the order of the text: what a parser sees."""
    from markdown_it import MarkdownIt

    found: Structure = defaultdict(list)
    tokens = MarkdownIt("commonmark").parse(text)
    items = 0
    for i, token in enumerate(tokens):
        match token.type:
            case "heading_open":
                found["heading"].append((token.tag, tokens[i + 1].content))
            case "fence":
                found["fence"].append((token.info.strip(), token.content))
            case "list_item_open":
                items += 1
                found["item"].append((str(items), tokens[i + 2].content.partition("\n")[0]))
            case "list_item_close":
                items -= 1
            case "blockquote_open":
                first, end = token.map or (0, 0)
                lines = text.split("\n")[first:end]
                found["lines of quotes"] += [()] * sum(bool(line.strip()) for line in lines)
            case "hr":
                found["hr"].append(())
            case "html_block":
                found["html"].append((token.content.strip(),))
            case "code_block":
                found["indented code"].append((token.content,))
            case "paragraph_open" if token.level == 0:
                lines = tokens[i + 1].content.split("\n")
                found["paragraph"].append(tuple(line.strip() for line in lines))
            case "inline":
                for child in token.children or ():
                    if child.type == "code_inline":
                        found["code"].append((child.content,))
                    elif child.type in ("em_open", "strong_open", "link_open", "image"):
                        if child.info != "auto":
                            found[child.type.removesuffix("_open")].append(())
    return dict(found)


@cache
def _symbols() -> Symbols:
    limits = mw.Limits(max_seconds=600.0)
    return Symbols(compile_for_bytes(shipped_grammar("markdown"), limits)[1], NAMES)


def of_grammar(text: str) -> Structure:
    """By kind, in the order of the text: what the grammar's rules and terminals are about."""
    data = text.encode()
    occurrences = _symbols().start.read(data).occurrences_at_end()
    assert occurrences is not None, text
    found: Structure = defaultdict(list)
    for symbol, start, end in sorted(occurrences, key=lambda each: (each.start, -each.end)):
        part = data[start:end].decode()
        lines = part.split("\n")
        if symbol in LEVELS:
            first = re.sub(r"^ *([-*+]|[0-9]+[.)]) +", "", lines[0])
            found["item"].append((str(LEVELS[symbol]), first.strip()))
        elif symbol in INLINE:
            found[INLINE[symbol]].append(())
        elif symbol == "heading":
            marks, _, content = part.partition(" ")
            content = re.sub(r"(^|[ ]+)#+[ ]*$", "", content.strip())
            found["heading"].append((f"h{len(marks)}", content.strip()))
        elif symbol == "underlined":
            found["heading"].append(("h1" if lines[1].startswith("=") else "h2", lines[0].strip()))
        elif symbol == "DEFINITION":
            found["defined"].append(())
        elif symbol.startswith("fence"):
            indent = int(symbol.partition("_")[2] or 0)
            opening, *inside, _ = [line[indent:] for line in lines]
            content = "".join(f"{line}\n" for line in inside)
            found["fence"].append((opening.lstrip(opening[:1]).strip(), content))
        elif symbol == "quote":
            found["lines of quotes"].append(())
        elif symbol in ("STARS", "dashes"):
            found["hr"].append(())
        elif symbol in ("CODE", "LONG_CODE"):
            content = part[1:-1].replace("\n", " ")
            padded = content.startswith(" ") and content.endswith(" ") and content.strip(" ")
            found["code"].append((content[1:-1] if padded else content,))
        elif symbol == "paragraph":
            found["paragraph"].append(tuple(line.strip() for line in lines))
        else:
            found["html"].append((part.strip(),))
    return dict(found)


def said_by_parser(texts: list[str]) -> list[str]:
    """By text, the first kind of part in which the two differ, or nothing."""
    found = []
    for text in texts:
        mine, theirs = of_grammar(text), of_parser(text)
        kinds = {*mine, *theirs} - {"defined"}
        if "defined" in mine:
            # Then brackets may be links, too.
            kinds -= {"link", "image"}
        wrong = [kind for kind in sorted(kinds) if mine.get(kind, []) != theirs.get(kind, [])]
        found.append(f"{wrong[0]}: {mine.get(wrong[0])} is {theirs.get(wrong[0])}" if wrong else "")
    return found
