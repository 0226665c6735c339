//! The configuration in force, what it lets programs do, and where the program was started.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::approve::Policy;
use crate::config::{self, Config, Env, Paths};

/// The configuration in force. A changed one takes its place as a whole.
#[derive(Debug)]
pub struct Settings {
    /// Where the program's files are.
    pub paths: Paths,
    /// The environment it was started in.
    pub env: Env,
    /// Where it was started.
    pub cwd: PathBuf,
    in_force: ArcSwap<InForce>,
}

/// A configuration and what follows from it.
#[derive(Debug)]
struct InForce {
    config: Arc<Config>,
    policy: Arc<Policy>,
}

impl InForce {
    fn new(config: Arc<Config>) -> InForce {
        InForce { policy: Arc::new(Policy::new(&config)), config }
    }
}

impl Settings {
    /// Reads the configuration.
    ///
    /// # Errors
    /// It cannot be read, or is wrong.
    pub fn load(paths: Paths, env: Env, cwd: PathBuf) -> Result<Settings, config::Error> {
        let config = Arc::new(config::load(&paths, &cwd, &env)?);
        Ok(Settings { in_force: ArcSwap::from_pointee(InForce::new(config)), paths, env, cwd })
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.in_force.load().config)
    }

    /// What programs may do with tools, by the configuration in force.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.in_force.load().policy)
    }

    /// Reads the configuration again, without putting it in force.
    pub(crate) fn read_again(&self) -> Result<Arc<Config>, config::Error> {
        Ok(Arc::new(config::load(&self.paths, &self.cwd, &self.env)?))
    }

    /// Puts another configuration in force.
    pub(crate) fn replace(&self, config: Arc<Config>) {
        self.in_force.store(Arc::new(InForce::new(config)));
    }
}
