"""What is compiled into `pml`: checks licences against `deny.toml` and the Rust version that each crate needs, and puts the
texts of the licences into one file.

    python3 packaging/licences.py TARGET [FILE]

Without FILE it only checks. `cargo deny check` says more, and has to be installed; this needs nothing but Cargo and Python.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = "pml"
TEXT = re.compile(r"(?i)^(licen[cs]e|copying|notice|unlicense|copyright)([-._].*)?$")
# Folders of a crate with licences of what its tests use, which is not compiled in.
ASIDE = {"tests", "test", "benches", "examples", "fuzz", "target", "node_modules"}
MIT = (
    'Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the '
    '"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, '
    "distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to "
    "the following conditions:\n\nThe above copyright notice and this permission notice shall be included in all copies or substantial "
    'portions of the Software.\n\nTHE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT '
    "LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR "
    "COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING "
    "FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.\n"
)
RULE = "\n" + "-" * 80 + "\n\n"


def allowed():
    return set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])


def permitted(expression, allow):
    """Whether an SPDX expression can be met with the allowed licences alone."""
    # Older manifests write `/` for OR.
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def either():
        met = both()
        while words and words[0] == "OR":
            words.pop(0)
            met = both() or met
        return met

    def both():
        met = one()
        while words and words[0] == "AND":
            words.pop(0)
            met = one() and met
        return met

    def one():
        word = words.pop(0)
        if word == "(":
            met = either()
            words.pop(0)
            return met
        if words and words[0] == "WITH":
            word += f" WITH {words[1]}"
            del words[:2]
        return word in allow

    return either()


def compiled_in(target):
    """The packages of others that the program for this target is linked from, by name and version."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    read = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)
    packages = {package["id"]: package for package in read["packages"]}
    nodes = {node["id"]: node for node in read["resolve"]["nodes"]}
    seen, waiting = set(), [id for id, package in packages.items() if package["name"] == PROGRAM]
    while waiting:
        id = waiting.pop()
        if id not in seen:
            seen.add(id)
            # Only normal dependencies are linked; those of tests and build scripts are not.
            linked = lambda needed: any(kind["kind"] is None for kind in needed["dep_kinds"])
            waiting += [needed["pkg"] for needed in nodes[id]["deps"] if linked(needed)]
    found = [packages[id] for id in seen if packages[id]["source"] is not None]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """The licence files of a package, with those of the C libraries in it."""
    folder = Path(package["manifest_path"]).parent
    # A crate may offer the GPL beside another licence; the other one is what it is used under.
    aside = lambda path: ASIDE.intersection(path.relative_to(folder).parts) or "GPL" in path.name
    files = [path for path in sorted(folder.rglob("*")) if TEXT.match(path.name) and path.is_file() and not aside(path)]
    found = [path.read_text(errors="replace").strip() + "\n" for path in files if path.suffix not in (".rs", ".c", ".h")]
    if not found and "MIT" in (package["license"] or ""):
        # Some crates name the licence and leave out its text.
        holders = ", ".join(re.sub(r"\s*<[^>]*>", "", author) for author in package["authors"])
        found = [f"Copyright (c) {holders or 'the contributors to ' + package['name']}\n\n{MIT}"]
    return found


def version(text):
    return [int(part) for part in (text.split(".") + ["0", "0"])[:3]]


def check(packages):
    ours = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    newer = [package for package in packages if version(package["rust_version"] or "1") > version(ours)]
    for package in newer:
        sys.stderr.write(f"{package['name']} {package['version']} needs Rust {package['rust_version']}\n")
    if newer:
        sys.exit(f"`rust-version` in Cargo.toml says {ours}: raise it, or use older versions of these crates")
    allow = allowed()
    refused = [package for package in packages if not permitted(package["license"] or "none", allow)]
    for package in refused:
        sys.stderr.write(f"{package['name']} {package['version']}: `{package['license']}` is not in deny.toml\n")
    if refused:
        sys.exit("a licence of a dependency is not allowed: use another crate, or allow the licence in deny.toml")


def third_party(target):
    """One text with the licences of everything that the program for `target` contains."""
    packages = compiled_in(target)
    check(packages)
    users = {}
    for package in packages:
        name = f"{package['name']} {package['version']} ({package['license']})"
        own = texts(package)
        if not own:
            sys.exit(f"{name} carries no licence text: add it to `licences.py`")
        for text in own:
            users.setdefault(text, []).append(name)
    parts = [f"{PROGRAM} contains the software below. Each text is preceded by the packages that it applies to.\n"]
    parts += ["\n".join(names) + "\n\n" + text for text, names in sorted(users.items(), key=lambda item: item[1])]
    parts.append((ROOT / "crates/pml/src/dashboard/page/vendor/LICENSES.txt").read_text())
    model = "all-MiniLM-L6-v2, the embedding model, by sentence-transformers (Apache-2.0): the text is that of LICENSE.\n"
    return (RULE.join([*parts, model])).encode()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    content = third_party(sys.argv[1])
    if len(sys.argv) == 3:
        Path(sys.argv[2]).write_bytes(content)
