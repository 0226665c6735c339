//! Text in, vector out: texts that mean much the same get vectors that point much the same way.
//!
//! [`Model::embedded`] is all-MiniLM-L6-v2, whose weights are a part of the program; [`Model::open`] reads another
//! model of the BERT or XLM-R family from a directory. Nothing here waits, reaches a network, knows
//! what a tool is, or remembers a text; the same text gets the same vector on every machine.

mod code;
mod config;
mod container;
mod error;
mod forward;
mod kernel;
mod linear;
mod math;
mod pack;
mod parts;
mod safetensors;
mod tokenizer;

use std::borrow::Cow;
use std::path::Path;

pub use error::Error;
pub use pack::pack;

use forward::Network;
use kernel::Level;
use tokenizer::Tokenizer;

/// Tokens that go through the network together: enough to use each weight many times while it is
/// near, few enough that what lies between two layers stays small.
const TOKENS_AT_ONCE: usize = 256;

/// A model that turns texts into vectors.
#[derive(Debug)]
pub struct Model {
    id: String,
    max_tokens: usize,
    tokenizer: Tokenizer,
    network: Network,
    level: Level,
}

impl Model {
    /// The model inside the program, all-MiniLM-L6-v2.
    #[cfg(feature = "embedded")]
    pub fn embedded() -> &'static Model {
        static WEIGHTS: &[u8] = include_bytes!("../model/minilm-l6-v2.int8");
        static MODEL: std::sync::LazyLock<Model> = std::sync::LazyLock::new(|| {
            Model::unpack(Cow::Borrowed(WEIGHTS)).expect("the tests read the weights that are in the program")
        });
        &MODEL
    }

    /// The model in `directory`: `config.json`, `model.safetensors`, and `tokenizer.json` or `vocab.txt`.
    ///
    /// Its weights are rounded to eight bits as they are read, so it takes a quarter of the room of its file.
    pub fn open(directory: &Path) -> Result<Model, Error> {
        let whole = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let name = whole.file_name().map_or("model".into(), |name| name.to_string_lossy().into_owned());
        let packed = pack(directory, &name)?;
        Model::unpack(Cow::Owned(packed))
            .map_err(|reason| Error::Malformed { path: directory.to_owned(), reason })
    }

    fn unpack(bytes: Cow<'static, [u8]>) -> Result<Model, String> {
        let (config, parts) = container::read(bytes)?;
        let tokenizer = Tokenizer::new(&config.tokenizer, &parts)?;
        let network = Network::new(&config, parts)?;
        if tokenizer.len() > network.words() {
            return Err(format!("{} pieces and only {} rows", tokenizer.len(), network.words()));
        }
        Ok(Model { id: config.id, max_tokens: config.max_tokens, tokenizer, network, level: Level::best() })
    }

    /// What the vectors are of: the name, how the weights are kept, and a digest of them. Vectors
    /// of models with different ids have nothing to say about each other.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How many numbers a vector has.
    pub fn dimensions(&self) -> usize {
        self.network.width()
    }

    /// How many tokens of a text count, with the two that mark its ends; what comes after is not seen.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// The vector of a text, of length one.
    pub fn embed(&self, text: &str) -> Vec<f32> {
        self.embed_all(&[text]).pop().expect("one text has one vector")
    }

    /// The vectors of many texts, in their order; each is what `embed` gives for it. Texts that are
    /// done together cost less than one after the other.
    pub fn embed_all(&self, texts: &[&str]) -> Vec<Vec<f32>> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut batch: Vec<Vec<u32>> = Vec::new();
        for text in texts {
            let tokens = self.tokens(text);
            let waiting: usize = batch.iter().map(Vec::len).sum();
            if waiting > 0 && waiting + tokens.len() > TOKENS_AT_ONCE {
                vectors.extend(self.network.run(&batch, self.level));
                batch.clear();
            }
            batch.push(tokens);
        }
        if !batch.is_empty() {
            vectors.extend(self.network.run(&batch, self.level));
        }
        vectors
    }

    /// The numbers of the tokens of a text, as the network is given them.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text, self.max_tokens)
    }
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
