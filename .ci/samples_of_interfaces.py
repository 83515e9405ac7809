"""Mutants of a small C interface, which lint must tell from what was kept of it, for the selftest."""

from check_interface import HEADER, KEPT, items_of

HEAD = "FCCL_API int fcclF(const void* send, int count);\n"
INTERFACE = HEAD + (
    "typedef enum { fcclOne = 1, fcclNumAll = 2 } fcclKind_t;\n"
    "typedef struct {\n  int a; /* the first */\n} fcclA_t;\n"
    "typedef void (*fcclDone_t)(void* user);\n"
)
KEPT_ITEMS = "".join(f"{name}: {item}\n" for name, item in items_of(INTERFACE).items())


def mutant(old: str, new: str) -> dict[str, str]:
    return {HEADER: INTERFACE.replace(old, new, 1), KEPT: KEPT_ITEMS}


# As in the selftest: check, file, content, and what its fault must say; None where there must be no fault.
SAMPLES = [
    ("interface", HEADER, mutant("", ""), None),
    ("interface", HEADER, mutant("int count", "int elements"), None),
    ("interface", HEADER, mutant("int a;", "int a; int b;"), None),
    ("interface", HEADER, mutant("fcclNumAll = 2", "fcclTwo = 2, fcclNumAll = 3"), "fcclTwo is not kept yet"),
    ("interface", HEADER, mutant(HEAD, ""), "has no fcclF any more"),
    ("interface", HEADER, mutant("int count", "long count"), "changes fcclF, which was: function int (const"),
    ("interface", HEADER, mutant("int fcclF", "void fcclF"), "changes fcclF"),
    ("interface", HEADER, mutant("fcclOne = 1", "fcclOne = 3"), "changes fcclOne"),
    ("interface", HEADER, mutant("int a;", "int b; int a;"), "changes fcclA_t"),
    ("interface", HEADER, mutant("void* user", "int user"), "changes fcclDone_t"),
    (
        "symbols",
        "a.cpp",
        {"a.cpp": 'extern "C" { int fcclG() { return 1; } }\n', KEPT: KEPT_ITEMS},
        "exports no fcclF any more",
    ),
]
