#!/usr/bin/env python3
"""Writes a wheel anew with a complete bill of materials and the licenses of what it has of others.

materials.py WHEEL FOLDER
    auditwheel has named the libraries that it brought; this adds those that are compiled in
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

# Debian's packages whose code is inside the libraries: an archive, and headers.
COMPILED_IN = ("libpugixml-dev", "libspdlog-dev", "libexpected-dev")
DOCUMENTATION = Path("/usr/share/doc")


def version_of(package: str) -> str:
    asked = ["dpkg-query", "--show", "--showformat", "${Version}", package]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def component(package: str, like: str) -> dict[str, str]:
    """An entry of CycloneDX; `like` is auditwheel's name of another of Debian's packages."""
    version = version_of(package)
    purl = f"{like.rpartition('/')[0]}/{package}@{quote(version)}"
    return {"type": "library", "bom-ref": purl, "name": package, "version": version, "purl": purl}


def complete(bill: dict) -> list[str]:
    """Adds to auditwheel's bill what is compiled in; gives the names of all packages in it."""
    brought = [part for part in bill["components"] if part["purl"].startswith("pkg:deb/")]
    added = [component(package, brought[0]["purl"]) for package in COMPILED_IN]
    bill["components"] += added
    bill["dependencies"][0]["dependsOn"] += [part["bom-ref"] for part in added]
    bill["dependencies"] += [{"ref": part["bom-ref"]} for part in added]
    return sorted({part["name"] for part in brought + added})


def add_licenses(metadata: Path, packages: list[str]) -> None:
    """Copies each package's license into the wheel, and lists it as the metadata must."""
    lines = []
    for package in packages:
        text = (DOCUMENTATION / package / "copyright").read_bytes()
        (metadata / "licenses" / f"{package}.txt").write_bytes(text)
        lines.append(f"License-File: {package}.txt\n")
    own = "License-File: LICENSE\n"
    described = (metadata / "METADATA").read_text(encoding="utf-8")
    if own not in described:
        raise ValueError(f"{metadata / 'METADATA'} has no line '{own.strip()}'")
    (metadata / "METADATA").write_text(described.replace(own, own + "".join(lines), 1), encoding="utf-8")


def main(wheel: Path, folder: Path) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["wheel", "unpack", "--dest", scratch, wheel], check=True)
        (unpacked,) = Path(scratch).iterdir()
        (metadata,) = unpacked.glob("*.dist-info")
        file = metadata / "sboms" / "auditwheel.cdx.json"
        bill = json.loads(file.read_text())
        packages = complete(bill)
        file.write_text(json.dumps(bill, indent=1) + "\n")
        add_licenses(metadata, packages)
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["wheel", "pack", "--dest-dir", folder, unpacked], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
