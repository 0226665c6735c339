//! PML's own files, which no tool of the built-in `fs` may reach, and roots that are too wide to be a default.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::paths::{Env, Paths};
use super::permission::YAML_FILE;
use super::{Config, disk};

/// The paths of PML's own files. Whoever opens files resolves them at that moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnFiles {
    /// The directories of configuration, data (with backups) and sockets. Everything in them is PML's, unless the
    /// root of `fs` lies inside: then only the names that [`is_own_name`] knows are.
    pub directories: Vec<PathBuf>,
    /// Configuration files anywhere; some may not exist.
    pub files: Vec<PathBuf>,
}

/// The names of PML's files in a directory that it shares with others. Add every new kind of file in the data
/// directory here.
const OWN_NAMES: &[&str] = &[
    "pml",
    YAML_FILE,
    "seal",
    "token",
    "passphrase",
    "trust",
    "accepted",
    "audit",
    "backup",
    "backups",
    "clients",
    "secrets",
    // Temporary files that are about to replace one of the others.
    ".tmp",
];

/// Whether a file called `name` in PML's own directory is PML's: one of its names, possibly with a suffix
/// (`pml.db-wal`, `token.lock`).
pub fn is_own_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    OWN_NAMES.iter().any(|own| {
        let rest = name.strip_prefix(own);
        rest.is_some_and(|rest| rest.is_empty() || *own == ".tmp" || rest.starts_with(['.', '-', '~']))
    })
}

/// The files of this installation and of the configuration in force. Untrusted project files are no configuration.
pub fn own_files(config: &Config, paths: &Paths, env: &Env) -> OwnFiles {
    let mut directories = vec![paths.data.clone()];
    // With `--config` the file may lie among other files; the default directory belongs to PML alone.
    directories.extend(Paths::discover(env).ok().map(|usual| disk::parent(&usual.config)));
    directories.extend(env.get("XDG_RUNTIME_DIR").map(|dir| Path::new(dir).join("pml")));
    directories.sort();
    directories.dedup();
    let mut files = vec![paths.config.clone(), disk::parent(&paths.config).join(YAML_FILE)];
    let read = config.findings.sources.iter().map(|source| &source.path);
    files.extend(read.filter(|path| !config.findings.untrusted.contains(path)).cloned());
    files.sort();
    files.dedup();
    OwnFiles { directories, files }
}

/// Why a directory is too wide as the default root of `fs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WideRoot {
    /// A home directory, or the parent of all home directories.
    Home,
    /// The root of the file system.
    Top,
}

/// Whether `dir` is a home directory or the root of the file system.
pub fn wide_root(dir: &Path, env: &Env) -> Option<WideRoot> {
    let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    if dir.parent().is_none() {
        return Some(WideRoot::Top);
    }
    let is_homes = |dir: &Path| [Path::new("/home"), Path::new("/Users")].contains(&dir);
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let homes = env.home().into_iter().chain(homes(&accounts));
    let is_home = is_homes(&dir)
        || dir.parent().is_some_and(is_homes)
        || homes.into_iter().any(|home| is_same(&home, &dir));
    is_home.then_some(WideRoot::Home)
}

/// The home directories of people in a passwd file. Service accounts are excluded: their directories hold the files
/// of the services, and people work there.
fn homes(accounts: &str) -> impl Iterator<Item = PathBuf> {
    accounts.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let uid: u32 = fields.get(2)?.parse().ok()?;
        let is_person = uid == 0 || (1_000..60_000).contains(&uid);
        fields.get(5).filter(|_| is_person).map(PathBuf::from)
    })
}

#[cfg(unix)]
fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(not(unix))]
fn is_same(one: &Path, other: &Path) -> bool {
    std::fs::canonicalize(one).is_ok_and(|one| one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ours_are_told_from_others() {
        for own in [
            "pml.toml",
            "pml.db",
            "pml.db-wal",
            "PML.DB-shm",
            "mcp-permissions.yaml",
            "seal.key",
            "seal.1f2e3d4c5b6a7988",
            "token",
            "passphrase",
            "trust.json",
            "accepted.json",
            "accepted.lock",
            "backups",
            "clients",
            "secrets",
            ".tmpA1b2C3",
        ] {
            assert!(is_own_name(OsStr::new(own)), "{own}");
        }
        for other in ["notes.md", "tokenizer.py", "pmlx", "data", "key", "trusted.md", "backups2", "tmp"] {
            assert!(!is_own_name(OsStr::new(other)), "{other}");
        }
    }

    #[test]
    fn homes_are_those_of_people() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\nwww:x:33:33:www:/var/www:/bin/false\n\
                        ada:x:1000:1000::/home/ada:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\nbroken\n";
        let found: Vec<PathBuf> = homes(accounts).collect();
        assert_eq!(found, [PathBuf::from("/root"), PathBuf::from("/home/ada")]);
    }

    #[cfg(unix)]
    #[test]
    fn a_home_is_known_by_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (home, link) = (dir.path().join("ada"), dir.path().join("link"));
        std::fs::create_dir_all(home.join("project")).unwrap();
        std::os::unix::fs::symlink(&home, &link).unwrap();
        let env = Env::from_iter([("HOME", link.to_str().unwrap())]);
        assert_eq!(wide_root(&home, &env), Some(WideRoot::Home));
        assert_eq!(wide_root(&link, &env), Some(WideRoot::Home));
        assert_eq!(wide_root(&home.join("project"), &env), None);
        assert_eq!(wide_root(dir.path(), &env), None);
        assert_eq!(wide_root(Path::new("/"), &env), Some(WideRoot::Top));
        assert_eq!(wide_root(Path::new("/home"), &env), Some(WideRoot::Home));
    }
}
