"""The declarations of include/fccl as Doxygen's XML has them, in the order of the headers."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

_CLASSES = ("class", "struct", "concept")
_LONGEST_SIGNATURE = 96
_UNSHOWN = ("FCCL_API", "FCCL_FCCL_H")


@dataclass
class Declared:
    """One declaration; what Doxygen has merged into it stands in its lists."""

    name: str  # with its namespace and class
    kind: str
    line: int
    signatures: list[str]
    about: Element | None = None
    rows: list[tuple[str, str, Element]] = field(default_factory=list)  # enumerators or fields
    inside: list["Declared"] = field(default_factory=list)  # a class's methods

    @property
    def short(self) -> str:
        """The name without namespace and class."""
        is_specialised = re.search(r"<.*>$", self.name)
        return self.name.removeprefix("fccl::") if is_specialised else self.name.split("::")[-1]

    @property
    def is_nameless(self) -> bool:
        """True for constructors and operators, which their class shows."""
        of_class = re.sub(r"<.*>", "", self.name).split("::")[:-1]
        return self.short.startswith(("operator", "~")) or self.short in of_class


def read(folder: Path) -> dict[str, list[Declared]]:
    """The declarations of each header, by its name."""
    found: dict[str, dict[str, Declared]] = {}
    for file in sorted(folder.glob("*.xml")):
        root = ElementTree.parse(file).getroot()
        for compound in root.iter("compounddef"):
            if compound.get("kind") in _CLASSES and compound.get("prot", "public") == "public":
                _keep(found, compound, _class_of(compound))
            if compound.get("kind") in ("file", "namespace"):
                for member in compound.iter("memberdef"):
                    if member.findtext("name") not in _UNSHOWN:
                        _keep(found, member, _member_of(member))
    return {header: _merged(sorted(kept.values(), key=_line)) for header, kept in found.items()}


def introductions(folder: Path) -> dict[str, Element]:
    """The comment at the head of each header."""
    found = {}
    for file in folder.glob("*.xml"):
        for compound in ElementTree.parse(file).getroot().iter("compounddef"):
            if compound.get("kind") == "file":
                found[compound.findtext("compoundname")] = compound.find("detaileddescription")
    return found


def _line(declared: Declared) -> int:
    return declared.line


def _keep(found: dict[str, dict[str, Declared]], element: Element, declared: Declared) -> None:
    header = Path(element.find("location").get("file")).name
    found.setdefault(header, {})[element.get("id")] = declared


def _merged(declared: list[Declared]) -> list[Declared]:
    """Puts overloads, and specialisations that say nothing of their own, into the first of their name."""
    merged: list[Declared] = []
    for each in declared:
        base = each.name.split("<")[0]
        before = next((other for other in merged if other.name == base), None)
        says_more = _has_text(each.about) or each.inside or each.rows
        if before and (each.name == base or not says_more) and each.kind == before.kind:
            before.signatures += each.signatures
            before.about = before.about if _has_text(before.about) else each.about
        else:
            merged.append(each)
    return merged


def _has_text(about: Element | None) -> bool:
    return about is not None and bool("".join(about.itertext()).strip())


def _class_of(compound: Element) -> Declared:
    name = _tidy(compound.findtext("compoundname"))
    members = [each for each in compound.iter("memberdef") if each.get("prot") == "public"]
    functions = [each for each in members if each.get("kind") == "function" and not _is_deleted(each)]
    methods = [_member_of(each) for each in functions]
    return Declared(
        name,
        "class",
        _line_of(compound),
        [_class_signature(compound, name)],
        compound.find("detaileddescription"),
        [_row(each) for each in members if each.get("kind") == "variable"],
        _merged(sorted(methods, key=_line)),
    )


def _is_deleted(member: Element) -> bool:
    return member.findtext("argsstring").endswith("=delete")


def _class_signature(compound: Element, name: str) -> str:
    if compound.get("kind") == "concept":
        return _text(compound.find("initializer")).replace("fccl::", "")
    bases = [_tidy(each.text) for each in compound.iter("basecompoundref")]
    inherits = f" : {', '.join(bases)}" if bases else ""
    return f"{_template(compound)}{compound.get('kind')} {name.removeprefix('fccl::')}{inherits}"


def _row(variable: Element) -> tuple[str, str, Element]:
    kind = _tidy(_text(variable.find("type"))) + variable.findtext("argsstring", "")
    return variable.findtext("name"), kind, variable.find("detaileddescription")


def _member_of(member: Element) -> Declared:
    kind = member.get("kind")
    name = member.findtext("qualifiedname") or member.findtext("name")
    signature = {"function": _function, "define": _define, "enum": _enum}.get(kind, _definition)
    declared = Declared(name, kind, _line_of(member), [signature(member)], member.find("detaileddescription"))
    for value in member.iter("enumvalue"):
        number = value.findtext("initializer", "").removeprefix("= ")
        declared.rows.append((value.findtext("name"), number, value.find("detaileddescription")))
    return declared


def _function(member: Element) -> str:
    words = [word for word in ("static", "explicit") if member.get(word) == "yes"]
    head = " ".join(filter(None, [*words, _text(member.find("type")), member.findtext("name")]))
    # Defaults behind the parentheses are the compiler's business.
    after = member.findtext("argsstring").rpartition(")")[2].split("=")[0].rstrip()
    parameters = [_parameter(each) for each in member.findall("param")]
    head = _template(member) + _tidy(head)
    line = f"{head}({', '.join(parameters)}){after}"
    if len(line.splitlines()[-1]) <= _LONGEST_SIGNATURE:
        return line
    return f"{head}(\n    " + ",\n    ".join(parameters) + f"){after}"


def _parameter(element: Element) -> str:
    default = element.find("defval")
    words = f"{_text(element.find('type'))} {element.findtext('declname', '')}{element.findtext('array', '')}"
    return _tidy(words) + (f" = {_text(default)}" if default is not None else "")


def _template(element: Element) -> str:
    parameters = element.find("templateparamlist")
    if parameters is None:
        return ""
    requires = element.find("requiresclause")
    clause = f"  requires {_tidy(_text(requires))}\n" if requires is not None else ""
    return f"template <{', '.join(_parameter(each) for each in parameters)}>\n{clause}"


def _define(member: Element) -> str:
    value = " ".join(_text(member.find("initializer")).replace("\\\n", " ").split())
    return f"#define {member.findtext('name')} {value}".rstrip()


def _enum(member: Element) -> str:
    return f"enum {'class ' if member.get('strong') == 'yes' else ''}{member.findtext('name')}"


def _definition(member: Element) -> str:
    return f"{_tidy(member.findtext('definition'))};".replace("fccl::", "").replace("= typedef", "=")


def _line_of(element: Element) -> int:
    return int(element.find("location").get("line"))


def _text(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()


def _tidy(words: str) -> str:
    """C++ with its stars, ampersands and angles where the headers have them."""
    words = re.sub(r"<\s+", "<", re.sub(r"\s+>", ">", words.strip()))
    return re.sub(r" ([*&]+) ?(?=\w)", r"\1 ", words).replace(" *", "*")
