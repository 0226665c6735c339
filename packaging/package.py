"""Makes the packages of one built `pml`: an archive, a wheel, two npm tarballs, and the files that point to them.

    python3 packaging/package.py --program target/dist/pml --target x86_64-unknown-linux-gnu --out target/packages

Needs nothing but Cargo and Python. The same program gives the same bytes: no package has a time or a user of this machine in it.
`--also DIR` takes the packages of other targets into the checksums, and their archives into the Homebrew formula.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import licences

ROOT = Path(__file__).resolve().parent.parent
NAME = "procedural-memory-layer"
THIRD_PARTY = "THIRD-PARTY-LICENSES.txt"
SUMMARY = "One MCP server in front of all of an agent's MCP servers, with a memory of what worked."
SHELLS = {"bash": "pml.bash", "zsh": "_pml", "fish": "pml.fish", "powershell": "_pml.ps1"}

# By target: the platform and processor that npm names, and the tag of a wheel. `{}` is the oldest glibc that the program
# runs with.
TARGETS = {
    "x86_64-unknown-linux-gnu": ("linux", "x64", "manylinux_2_{}_x86_64"),
    "aarch64-unknown-linux-gnu": ("linux", "arm64", "manylinux_2_{}_aarch64"),
    "x86_64-apple-darwin": ("darwin", "x64", "macosx_10_12_x86_64"),
    "aarch64-apple-darwin": ("darwin", "arm64", "macosx_11_0_arm64"),
    "x86_64-pc-windows-msvc": ("win32", "x64", "win_amd64"),
}


def workspace():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]


level = 9  # Of compression, from 1 to 9.


def tarball(files):
    """A `.tar.gz` of `(path, bytes, mode)`."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0, compresslevel=level) as zipped:
        with tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for path, content, mode in files:
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(content), mode
                archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def zip_file(files):
    """A zip archive of `(path, bytes, mode)`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content, mode in files:
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, level)
    return packed.getvalue()


def documents(teller, third_party):
    """README, licences, manual page and completions, beside the program in an archive. `teller` is a `pml` of this version that
    runs on this machine: the manual page and completions are the same for every target."""
    files = [(name, (ROOT / name).read_bytes(), 0o644) for name in ("README.md", "LICENSE")]
    files.append((THIRD_PARTY, third_party, 0o644))
    said = lambda *words: subprocess.run([teller, *words], check=True, capture_output=True).stdout
    files.append(("pml.1", said("man"), 0o644))
    files += [(f"completions/{file}", said("completions", shell), 0o644) for shell, file in SHELLS.items()]
    return files


def archive(out, version, target, teller, content, third_party):
    """`pml-VERSION-TARGET.tar.gz`, or `.zip` for Windows."""
    folder = f"pml-{version}-{target}"
    windows = "windows" in target
    files = [("pml.exe" if windows else "pml", content, 0o755), *documents(teller, third_party)]
    files = [(f"{folder}/{path}", data, mode) for path, data, mode in files]
    path = out / f"{folder}{'.zip' if windows else '.tar.gz'}"
    path.write_bytes(zip_file(files) if windows else tarball(files))
    return path


# `uvx` starts the command with the name of the package.
LAUNCHER = """\"\"\"Starts `pml`, which this package installs beside the command that runs this.\"\"\"

import os
import subprocess
import sys
import sysconfig


def main():
    name = "pml.exe" if os.name == "nt" else "pml"
    beside = [os.path.dirname(os.path.abspath(sys.argv[0])), sysconfig.get_path("scripts")]
    programs = [os.path.join(directory, name) for directory in beside]
    program = next((path for path in programs if os.path.isfile(path)), None)
    if program is None:
        sys.exit(f"{name} is not installed beside this command: install procedural-memory-layer again")
    if os.name == "nt":
        sys.exit(subprocess.call([program, *sys.argv[1:]]))
    os.execv(program, [program, *sys.argv[1:]])
"""


def wheel(out, version, target, content, third_party):
    """A wheel that installs the program itself as the command `pml`, and a command with the name of the package."""
    tag = TARGETS[target][2]
    if "{}" in tag:
        needed = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", content)]
        # No older glibc has a manylinux tag for Rust programs.
        tag = tag.format(max([17, *needed]))
    package = f"{NAME.replace('-', '_')}-{version}"
    program = "pml.exe" if "windows" in target else "pml"
    licence = workspace()["license"]
    files = [
        (f"{package}.data/scripts/{program}", content, 0o755),
        (
            f"{package}.dist-info/METADATA",
            f"Metadata-Version: 2.4\nName: {NAME}\nVersion: {version}\nSummary: {SUMMARY}\nLicense-Expression: {licence}\n"
            f"License-File: LICENSE\nLicense-File: {THIRD_PARTY}\n"
            f"Project-URL: Source, {workspace()['repository']}\nRequires-Python: >=3.8\n"
            f"Description-Content-Type: text/markdown\n\n{(ROOT / 'README.md').read_text()}\n"
            # The registry of MCP servers finds here that the package belongs to the entry.
            f"<!-- mcp-name: {server_name()} -->\n".encode(),
            0o644,
        ),
        (f"{NAME.replace('-', '_')}.py", LAUNCHER.encode(), 0o644),
        (
            f"{package}.dist-info/entry_points.txt",
            f"[console_scripts]\n{NAME} = {NAME.replace('-', '_')}:main\n".encode(),
            0o644,
        ),
        (
            f"{package}.dist-info/WHEEL",
            f"Wheel-Version: 1.0\nGenerator: pml\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n".encode(),
            0o644,
        ),
        (f"{package}.dist-info/licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
        (f"{package}.dist-info/licenses/{THIRD_PARTY}", third_party, 0o644),
    ]
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = [f"{path},sha256={digest(data)},{len(data)}\n" for path, data, _ in files]
    record.append(f"{package}.dist-info/RECORD,,\n")
    files.append((f"{package}.dist-info/RECORD", "".join(record).encode(), 0o644))
    path = out / f"{package}-py3-none-{tag}.whl"
    path.write_bytes(zip_file(files))
    return path


def npm(out, version, target, content, third_party):
    """The npm package of the platform, with the program, and the one that users install, which depends on it."""
    system, processor, _ = TARGETS[target]
    program = "pml.exe" if system == "win32" else "pml"
    common = {
        "version": version,
        "description": SUMMARY,
        "license": workspace()["license"],
        "repository": {"type": "git", "url": f"git+{workspace()['repository']}.git"},
    }
    platforms = [f"@{NAME}/pml-{system}-{processor}" for system, processor, _ in TARGETS.values()]
    own = f"@{NAME}/pml-{system}-{processor}"
    described = {
        own: {**common, "os": [system], "cpu": [processor], "files": [program, THIRD_PARTY], "preferUnplugged": True},
        NAME: {
            **common,
            "type": "module",
            "bin": {"pml": "pml.js"},
            "files": ["pml.js"],
            "engines": {"node": ">=18"},
            "mcpName": server_name(),
            "optionalDependencies": {platform: version for platform in platforms},
        },
    }
    carried = {own: (program, content), NAME: ("pml.js", (ROOT / "packaging/npm/pml.js").read_bytes())}
    made = []
    for name, about in described.items():
        files = [
            ("package/package.json", json.dumps({"name": name, **about}, indent=2).encode() + b"\n", 0o644),
            ("package/LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
            ("package/README.md", (ROOT / "README.md").read_bytes(), 0o644),
            (f"package/{carried[name][0]}", carried[name][1], 0o755),
        ]
        # The other package holds no program.
        if name == own:
            files.append((f"package/{THIRD_PARTY}", third_party, 0o644))
        path = out / f"{name.replace('@', '').replace('/', '-')}-{version}.tgz"
        path.write_bytes(tarball(files))
        made.append(path)
    return made


def server_name():
    owner = workspace()["repository"].split("/")[3]
    return f"io.github.{owner}/pml"


def server_json(version):
    """The entry for registries of MCP servers."""
    package = lambda registry: {
        "registryType": registry,
        "identifier": NAME,
        "version": version,
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": "stdio"}],
    }
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": server_name(),
        "title": "PML",
        # The registry allows 100 characters.
        "description": SUMMARY[:100],
        "repository": {"url": workspace()["repository"], "source": "github"},
        "version": version,
        "packages": [package("npm"), package("pypi")],
    }


def formula(version, archives):
    """A Homebrew formula for those archives that Homebrew can use."""
    systems = {"apple-darwin": "on_macos", "linux-gnu": "on_linux"}
    processors = {"aarch64": "on_arm", "x86_64": "on_intel"}
    blocks = []
    for suffix, on_system in systems.items():
        inner = []
        for prefix, on_processor in processors.items():
            for path in archives:
                if path.name.startswith(f"pml-{version}-{prefix}-") and path.name.endswith(f"{suffix}.tar.gz"):
                    sum_ = hashlib.sha256(path.read_bytes()).hexdigest()
                    url = f"{workspace()['repository']}/releases/download/v{version}/{path.name}"
                    inner.append(
                        f"    {on_processor} do\n      url \"{url}\"\n      sha256 \"{sum_}\"\n    end\n"
                    )
        if inner:
            blocks.append(f"  {on_system} do\n{''.join(inner)}  end\n")
    return f"""class Pml < Formula
  desc "{SUMMARY.removesuffix('.').replace("One MCP", "MCP")}"
  homepage "{workspace()['repository']}"
  version "{version}"
  license "{workspace()['license']}"

{chr(10).join(blocks)}
  def install
    bin.install "pml"
    man1.install "pml.1"
    bash_completion.install "completions/pml.bash" => "pml"
    zsh_completion.install "completions/_pml"
    fish_completion.install "completions/pml.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/pml --version")
    system bin/"pml", "self-check"
  end
end
"""


def packages_in(directory, version):
    """The archives, wheels and npm packages that were made for another target."""
    names = [f"pml-{version}-*", f"{NAME.replace('-', '_')}-{version}-*.whl", f"{NAME}-pml-*-{version}.tgz"]
    return sorted(path for name in names for path in directory.glob(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--target", choices=TARGETS, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--also", type=Path, action="append", default=[])
    parser.add_argument("--foreign", type=Path, metavar="PML", help="the program does not run on this machine; PML, of the same version, does")
    parser.add_argument("--level", type=int, default=level, help="of compression, from 1 to 9")
    options = parser.parse_args()
    globals()["level"] = options.level
    version = workspace()["version"]
    if options.out.exists():
        shutil.rmtree(options.out)
    options.out.mkdir(parents=True)
    out, program = options.out, options.program.resolve()
    content = program.read_bytes()
    teller = (options.foreign or program).resolve()
    told = subprocess.run([teller, "--version"], check=True, capture_output=True, text=True).stdout.split()
    if version not in told:
        sys.exit(f"{teller} is not version {version}, whose manual page and completions are packed")
    third_party = licences.third_party(options.target)
    archives = [archive(out, version, options.target, teller, content, third_party)]
    made = [*archives, wheel(out, version, options.target, content, third_party)]
    made += npm(out, version, options.target, content, third_party)
    for other in options.also:
        for path in packages_in(other, version):
            if not (out / path.name).exists():
                made.append(Path(shutil.copy(path, out / path.name)))
                if path.name.startswith("pml-"):
                    archives.append(made[-1])
    (out / "pml.rb").write_text(formula(version, archives))
    (out / "server.json").write_text(json.dumps(server_json(version), indent=2) + "\n")
    shutil.copy(ROOT / "packaging/Containerfile", out / "Containerfile")
    made += [out / name for name in ("pml.rb", "server.json", "Containerfile")]
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made)]
    (out / "SHA256SUMS").write_text("".join(sums))
    for path in sorted(made):
        sys.stderr.write(f"{path}: {path.stat().st_size / (1 << 20):.1f} MiB\n")


main()
