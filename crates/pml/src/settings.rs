//! The configuration in force, the policy derived from it, and the environment the program was started in.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::approve::Policy;
use crate::config::{self, Config, Env, Paths};

/// The configuration in force. A changed configuration replaces it as a whole.
#[derive(Debug)]
pub struct AppSettings {
    /// The locations of the program's files.
    pub paths: Paths,
    /// The environment variables at the start.
    pub env: Env,
    /// The working directory at the start.
    pub cwd: PathBuf,
    in_force: ArcSwap<ActiveConfig>,
}

/// A configuration and the policy derived from it.
#[derive(Debug)]
struct ActiveConfig {
    config: Arc<Config>,
    policy: Arc<Policy>,
}

impl ActiveConfig {
    fn new(config: Arc<Config>) -> ActiveConfig {
        ActiveConfig { policy: Arc::new(Policy::new(&config)), config }
    }
}

impl AppSettings {
    /// Reads the configuration.
    ///
    /// # Errors
    /// It cannot be read, or is wrong.
    pub fn load(paths: Paths, env: Env, cwd: PathBuf) -> Result<AppSettings, config::Error> {
        let config = Arc::new(config::load(&paths, &cwd, &env)?);
        Ok(AppSettings { in_force: ArcSwap::from_pointee(ActiveConfig::new(config)), paths, env, cwd })
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.in_force.load().config)
    }

    /// The policy for tool calls, from the configuration in force.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.in_force.load().policy)
    }

    /// Reads the configuration again, without applying it.
    pub(crate) fn read_again(&self) -> Result<Arc<Config>, config::Error> {
        Ok(Arc::new(config::load(&self.paths, &self.cwd, &self.env)?))
    }

    /// Applies another configuration.
    pub(crate) fn replace(&self, config: Arc<Config>) {
        self.in_force.store(Arc::new(ActiveConfig::new(config)));
    }
}
