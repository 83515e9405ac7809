"""The bill of materials names what is compiled in, and the metadata lists every license."""

import materials
import pytest

WHEEL = "pkg:pypi/fccl@0.1.0"
FMT = "pkg:deb/debian/libfmt9@9.1.0%2Bds1-2"


@pytest.fixture
def bill(monkeypatch):
    monkeypatch.setattr(materials, "version_of", lambda package: f"1.2+{len(package)}")
    return {
        "components": [
            {"type": "library", "bom-ref": WHEEL, "name": "fccl", "version": "0.1.0", "purl": WHEEL},
            {"type": "library", "bom-ref": FMT + "#1", "name": "libfmt9", "version": "9.1.0", "purl": FMT},
        ],
        "dependencies": [{"ref": WHEEL, "dependsOn": [FMT + "#1"]}, {"ref": FMT + "#1"}],
    }


def test_what_is_compiled_in_is_named_as_auditwheel_names_what_it_brings(bill):
    assert materials.complete(bill) == ["libexpected-dev", "libfmt9", "libpugixml-dev", "libspdlog-dev"]
    purl = "pkg:deb/debian/libpugixml-dev@1.2%2B14"
    assert purl in [part["purl"] for part in bill["components"]]
    assert purl in bill["dependencies"][0]["dependsOn"]
    assert {"ref": purl} in bill["dependencies"]


def test_licenses_are_copied_and_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(materials, "DOCUMENTATION", tmp_path / "doc")
    (tmp_path / "doc" / "libfmt9").mkdir(parents=True)
    (tmp_path / "doc" / "libfmt9" / "copyright").write_text("MIT")
    (tmp_path / "licenses").mkdir()
    (tmp_path / "METADATA").write_text("Name: fccl\nLicense-File: LICENSE\n\nRead me.\n")
    materials.add_licenses(tmp_path, ["libfmt9"])
    assert (tmp_path / "licenses" / "libfmt9.txt").read_text() == "MIT"
    assert "License-File: LICENSE\nLicense-File: libfmt9.txt\n\n" in (tmp_path / "METADATA").read_text()
