//! The paths of PML's files, and the environment it was started in.
//!
//! The process environment is read once, by [`Env::of_process`]. Everything else receives it as a value, so that
//! behaviour depends on inputs alone.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::error::Error;

/// Environment variables. Values may be secrets, so `Debug` shows only names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// The environment of this process. Variables that are not UTF-8 are left out: a configuration could not contain
    /// them either.
    pub fn of_process() -> Env {
        Env(std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect())
    }

    /// The value of the variable `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        if cfg!(windows) {
            return self.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        }
        self.0.get(name).map(String::as_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The user's home directory.
    pub fn home(&self) -> Option<PathBuf> {
        let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        self.absolute(name)
    }

    /// The directory in the variable `name`; a relative one counts as unset, as the XDG specification says.
    pub(super) fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// `path` with a leading `~` expanded; a relative path is resolved against `base`.
    pub(super) fn resolve(&self, path: &str, base: &Path) -> PathBuf {
        match (self.strip_home(path), self.home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(path),
        }
    }

    /// The rest after `~/`; `None` where `path` does not start with it.
    pub(super) fn strip_home<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix("~/").or_else(|| (path == "~").then_some(""))
    }

    /// `path` for display, with the home directory as `~`.
    pub(crate) fn display_path(&self, path: &Path) -> String {
        let below = self.home().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
        let text = match below {
            Some(rest) => format!("~/{}", rest.display()),
            None => path.display().to_string(),
        };
        pml_model::name::printable(&text).replace('\n', "\\n")
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Env {
        Env(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The paths of PML's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The user's `pml.toml`.
    pub config: PathBuf,
    /// The data directory.
    pub data: PathBuf,
}

impl Paths {
    /// The paths below `PML_HOME` where it is set, else in the XDG directories or their defaults.
    ///
    /// # Errors
    /// `PML_HOME` is relative, or there is no home directory to fall back on.
    pub fn discover(env: &Env) -> Result<Paths, Error> {
        if let Some(home) = env.get("PML_HOME").filter(|home| !home.is_empty()) {
            return Paths::below(Path::new(home));
        }
        let config = Paths::base(env, "XDG_CONFIG_HOME", ".config")?;
        let data = Paths::base(env, "XDG_DATA_HOME", ".local/share")?;
        Ok(Paths { config: config.join("pml/pml.toml"), data: data.join("pml") })
    }

    /// The same paths with another configuration file (`--config`), which may be relative to `cwd`.
    #[must_use]
    pub fn with_config(self, config: &Path, cwd: &Path) -> Paths {
        Paths { config: cwd.join(config), ..self }
    }

    /// The path of the database.
    pub fn database(&self) -> PathBuf {
        self.data.join("pml.db")
    }

    /// The default directory of backups.
    pub fn backups(&self) -> PathBuf {
        self.data.join("backups")
    }

    /// The path of the bearer token of `pml serve`.
    pub fn token(&self) -> PathBuf {
        self.data.join("token")
    }

    /// The path of the hash of the passphrase.
    pub fn passphrase(&self) -> PathBuf {
        self.data.join("passphrase")
    }

    /// The path of the list of client files that PML was put into.
    pub fn client_records(&self) -> PathBuf {
        self.data.join("clients.json")
    }

    /// The directory of copies of files that `pml init` changed.
    pub fn client_backups(&self) -> PathBuf {
        self.backups().join("clients")
    }

    /// The directory of secrets that `pml init` moved out of the files of clients.
    pub fn secrets(&self) -> PathBuf {
        self.data.join("secrets")
    }

    /// The path of the list of trusted project configurations.
    pub fn trust(&self) -> PathBuf {
        self.data.join("trust.json")
    }

    fn below(home: &Path) -> Result<Paths, Error> {
        if !home.is_absolute() {
            // With a relative path the configuration would depend on the directory that a client starts PML in.
            let message = format!("`PML_HOME` is the relative path `{}`", home.display());
            return Err(Error::refused(message, "give an absolute path"));
        }
        Ok(Paths { config: home.join("pml.toml"), data: home.to_owned() })
    }

    fn base(env: &Env, name: &str, default: &str) -> Result<PathBuf, Error> {
        env.absolute(name).or_else(|| Some(env.home()?.join(default))).ok_or_else(|| {
            Error::refused("there is no home directory to keep files in", "set `PML_HOME` to a directory")
        })
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], config: &str, data: &str) {
        let paths = Paths::discover(&variables.iter().copied().collect()).unwrap();
        assert_eq!((paths.config, paths.data), (config.into(), data.into()), "{variables:?}");
    }

    #[test]
    fn files_are_found_by_pml_home_then_xdg_then_home() {
        check(&[("HOME", "/h")], "/h/.config/pml/pml.toml", "/h/.local/share/pml");
        check(
            &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "/d")],
            "/c/pml/pml.toml",
            "/d/pml",
        );
        check(
            &[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative"), ("PML_HOME", "")],
            "/h/.config/pml/pml.toml",
            "/h/.local/share/pml",
        );
        check(&[("HOME", "/h"), ("XDG_DATA_HOME", "/d"), ("PML_HOME", "/x")], "/x/pml.toml", "/x");
    }

    #[test]
    fn another_config_file_leaves_the_data_where_it_is() {
        let paths = Paths::discover(&Env::from_iter([("PML_HOME", "/x")])).unwrap();
        let paths = paths.with_config(Path::new("other.toml"), Path::new("/cwd"));
        assert_eq!(paths.config, Path::new("/cwd/other.toml"));
        assert_eq!(
            [paths.database(), paths.token(), paths.trust()],
            ["/x/pml.db", "/x/token", "/x/trust.json"].map(PathBuf::from)
        );
    }

    #[test]
    fn no_place_for_files_is_an_error_that_says_what_to_set() {
        let none = Paths::discover(&Env::default()).unwrap_err();
        assert_eq!(
            none.to_string(),
            "there is no home directory to keep files in\nhint: set `PML_HOME` to a directory"
        );
        let relative = Paths::discover(&Env::from_iter([("PML_HOME", "x"), ("HOME", "/h")])).unwrap_err();
        assert_eq!(relative.to_string(), "`PML_HOME` is the relative path `x`\nhint: give an absolute path");
    }

    #[test]
    fn the_environment_does_not_print_its_values() {
        let env = Env::from_iter([("TOKEN", "hunter2")]);
        assert_eq!(format!("{env:?}"), r#"{"TOKEN"}"#);
    }
}
