"""The parts of a program as SPDX 2.3: what the linker's map says is in it, described by vendor/manifest.

A library of which no object is linked is not named, and an archive that the manifest does not know ends the making.
"""
import hashlib
import json
import re
import time

# The row of vendor/manifest where an archive is called otherwise (build/vendor.mk: row_of).
ROWS = {"c": "musl", "elf": "elfutils", "dw": "elfutils"}
COMPILER = "libgcc"


def manifest(text):
    """name -> (version, licence, address, sha256) of upstream's tarball."""
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {row[0]: (row[1], row[2], row[6], row[7]) for row in rows}


def linked(link_map):
    """Row of the manifest, or the compiler's library -> how many objects of it are in the program."""
    head, is_gnu, _ = link_map.partition("\nMemory Configuration\n")
    is_llvm = link_map.split("\n", 1)[0].split()[:2] == ["VMA", "LMA"]
    if not is_gnu and not is_llvm:
        raise SystemExit("dist: this is no linker's map")
    counts = {}
    # GNU's has a line for each object at its beginning, LLVM's one for each part of an object.
    for library, _ in sorted(set(re.findall(r"^%s\S*/lib(\w+)\.a\(([^)]+)\)" % (r".*\s" if is_llvm else ""), head, re.M))):
        name = COMPILER if library == "gcc" else ROWS.get(library, library)
        counts[name] = counts.get(name, 0) + 1
    # A table made of it is embedded (build/assets.S), as an object of our own.
    if "/obj/assets.o" in link_map:
        counts["roots"] = 1
    return counts


def licence(name, text):
    """(SPDX's expression, a licence that is in no list of SPDX or None)."""
    if "-with-" not in name:
        return name, None
    words = re.search(r"^\(4\)(.*?)(?=^\(\d\)|\Z)", text, re.M | re.S)[1]
    reference = f"LicenseRef-{name}"
    return reference, {"licenseId": reference, "name": name, "extractedText": " ".join(words.split())}


def document(release, arch, link_map, manifest_text, compiler):
    rows = manifest(manifest_text)
    rows[COMPILER] = (compiler, "GPL-3.0-or-later WITH GCC-exception-3.1", "NOASSERTION", None)
    counts = linked(link_map)
    if set(counts) - set(rows):
        raise SystemExit(f"dist: linked, and not in vendor/manifest: {', '.join(sorted(set(counts) - set(rows)))}")
    program = release.programs[arch]
    packages, relations, extra = [], [], {}

    def relate(one, how, other):
        relations.append({"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other})
    for name in sorted(counts):
        version, named, address, sha256 = rows[name]
        expression, reference = licence(named, release.licences["NOTICE"].decode())
        if reference:
            extra[expression] = reference
        packages.append({"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": version, "downloadLocation": address,
                         "filesAnalyzed": False, "licenseConcluded": expression, "licenseDeclared": expression, "copyrightText": "NOASSERTION",
                         "comment": f"objects that are linked: {counts[name]}",
                         **({"checksums": [{"algorithm": "SHA256", "checksumValue": sha256}]} if sha256 else {})})
        relate("SPDXRef-program", "STATIC_LINK", f"SPDXRef-{name}")
    own = {"SPDXID": "SPDXRef-pillion", "name": "pillion", "versionInfo": release.version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
           "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "Copyright the pillion authors",
           "sourceInfo": f"git commit {release.commit}", "primaryPackagePurpose": "APPLICATION"}
    # A package whose files are not all listed contains none.
    relate("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-program")
    relate("SPDXRef-program", "GENERATED_FROM", "SPDXRef-pillion")
    sha256 = hashlib.sha256(program).hexdigest()
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"pillion-{release.version}-linux-{arch}",
        "documentNamespace": f"https://example.com/pillion/{release.version}/{arch}/{sha256}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch)), "creators": ["Tool: build/dist/sbom.py"]},
        "packages": [own, *packages],
        "files": [{"SPDXID": "SPDXRef-program", "fileName": "./pillion", "fileTypes": ["BINARY"], "licenseConcluded": "NOASSERTION",
                   "copyrightText": "NOASSERTION", "checksums": [
                       {"algorithm": "SHA1", "checksumValue": hashlib.sha1(program).hexdigest()},
                       {"algorithm": "SHA256", "checksumValue": sha256}]}],
        "relationships": relations, **({"hasExtractedLicensingInfos": list(extra.values())} if extra else {})}, indent=1).encode() + b"\n"
