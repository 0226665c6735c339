//! PML's own files: what no tool of the built-in `fs` may reach, and which roots are too wide to be guessed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::paths::{Env, Paths};
use super::permission::YAML_FILE;
use super::{Config, disk};

/// PML's own files, as paths. What they are at a moment is for whoever opens files to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnFiles {
    /// The directories of configuration, data (with backups) and sockets. All that is in them is PML's, unless a person
    /// works there: then only what [`is_own_name`] knows is.
    pub directories: Vec<PathBuf>,
    /// Files that are configuration wherever they are; some may not exist.
    pub files: Vec<PathBuf>,
}

/// How PML's files are called in a directory that it shares with others. A new kind of file that PML keeps in its data
/// directory belongs here.
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
    // Drafts that are about to replace one of the others.
    ".tmp",
];

/// Whether a file called `name` in PML's own directory is PML's: one of its names, or one with an ending (`pml.db-wal`,
/// `token.lock`).
pub fn is_own_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    OWN_NAMES.iter().any(|own| {
        let rest = name.strip_prefix(own);
        rest.is_some_and(|rest| rest.is_empty() || *own == ".tmp" || rest.starts_with(['.', '-', '~']))
    })
}

/// The files of this installation and of the configuration in force. Project files that nobody trusts are not
/// configuration.
pub fn own_files(config: &Config, paths: &Paths, env: &Env) -> OwnFiles {
    let mut directories = vec![paths.data.clone()];
    // With `--config` the file may lie among files that are not ours; the usual place is ours alone.
    directories.extend(Paths::discover(env).ok().map(|usual| disk::parent(&usual.config)));
    directories.extend(env.get("XDG_RUNTIME_DIR").map(|dir| Path::new(dir).join("pml")));
    directories.sort();
    directories.dedup();
    let mut files = vec![paths.config.clone(), disk::parent(&paths.config).join(YAML_FILE)];
    let read = config.sources.iter().map(|source| &source.path);
    files.extend(read.filter(|path| !config.untrusted.contains(path)).cloned());
    files.sort();
    files.dedup();
    OwnFiles { directories, files }
}

/// Why a directory that nobody named is too wide a root for `fs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooWide {
    /// It is somebody's home directory, or the directory of all of them.
    Home,
    /// It is the top of the file system.
    Top,
}

/// Whether `dir` is a home directory or the top of the file system.
pub fn too_wide(dir: &Path, env: &Env) -> Option<TooWide> {
    let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    if dir.parent().is_none() {
        return Some(TooWide::Top);
    }
    let is_homes = |dir: &Path| [Path::new("/home"), Path::new("/Users")].contains(&dir);
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let homes = env.home().into_iter().chain(homes(&accounts));
    let is_home = is_homes(&dir)
        || dir.parent().is_some_and(is_homes)
        || homes.into_iter().any(|home| is_same(&home, &dir));
    is_home.then_some(TooWide::Home)
}

/// The home directories of people in a file of accounts. Those of services are where the services' files are, and people
/// work there.
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
        assert_eq!(too_wide(&home, &env), Some(TooWide::Home));
        assert_eq!(too_wide(&link, &env), Some(TooWide::Home));
        assert_eq!(too_wide(&home.join("project"), &env), None);
        assert_eq!(too_wide(dir.path(), &env), None);
        assert_eq!(too_wide(Path::new("/"), &env), Some(TooWide::Top));
        assert_eq!(too_wide(Path::new("/home"), &env), Some(TooWide::Home));
    }
}
