//! Text embeddings: texts of similar meaning get vectors of similar direction.
//!
//! [`TransformerModel::embedded`] is all-MiniLM-L6-v2, whose weights are compiled into the program.
//! [`TransformerModel::open`] reads another model of the BERT or XLM-R family from a directory. Nothing here blocks,
//! uses the network, knows what a tool is, or remembers a text. The same text gets the same vector on every machine.

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

use forward::TransformerEncoder;
use kernel::SimdLevel;
use tokenizer::Tokenizer;

/// Tokens per batch: enough to use each weight many times while it is in the cache, few enough that the intermediate
/// results stay small.
const TOKENS_AT_ONCE: usize = 256;

/// An embedding model.
#[derive(Debug)]
pub struct TransformerModel {
    id: String,
    max_tokens: usize,
    tokenizer: Tokenizer,
    network: TransformerEncoder,
    level: SimdLevel,
}

impl TransformerModel {
    /// The built-in model, all-MiniLM-L6-v2.
    #[cfg(feature = "embedded")]
    pub fn embedded() -> &'static TransformerModel {
        static WEIGHTS: &[u8] = include_bytes!("../model/minilm-l6-v2.int8");
        static MODEL: std::sync::LazyLock<TransformerModel> = std::sync::LazyLock::new(|| {
            TransformerModel::unpack(Cow::Borrowed(WEIGHTS))
                .expect("the tests read the weights that are in the program")
        });
        &MODEL
    }

    /// The model in `directory`: `config.json`, `model.safetensors`, and `tokenizer.json` or `vocab.txt`.
    ///
    /// Its weights are quantised to eight bits while they are read, so it takes a quarter of the size of its file.
    pub fn open(directory: &Path) -> Result<TransformerModel, Error> {
        let whole = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let name = whole.file_name().map_or("model".into(), |name| name.to_string_lossy().into_owned());
        let packed = pack(directory, &name)?;
        TransformerModel::unpack(Cow::Owned(packed))
            .map_err(|reason| Error::Malformed { path: directory.to_owned(), reason })
    }

    /// The model whose weights [`pack`] packed into `file`.
    pub fn open_packed(file: &Path) -> Result<TransformerModel, Error> {
        let bytes =
            std::fs::read(file).map_err(|source| Error::Unreadable { path: file.to_owned(), source })?;
        TransformerModel::unpack(Cow::Owned(bytes))
            .map_err(|reason| Error::Malformed { path: file.to_owned(), reason })
    }

    fn unpack(bytes: Cow<'static, [u8]>) -> Result<TransformerModel, String> {
        let (config, parts) = container::read_container(bytes)?;
        let tokenizer = Tokenizer::new(&config.tokenizer, &parts)?;
        let network = TransformerEncoder::new(&config, parts)?;
        if tokenizer.len() > network.vocabulary_size() {
            return Err(format!("{} pieces and only {} rows", tokenizer.len(), network.vocabulary_size()));
        }
        Ok(TransformerModel {
            id: config.id,
            max_tokens: config.max_tokens,
            tokenizer,
            network,
            level: SimdLevel::best(),
        })
    }

    /// Id of the model: its name, the encoding of the weights, and a digest of them. Vectors of models with different
    /// ids cannot be compared.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Number of dimensions of a vector.
    pub fn dimensions(&self) -> usize {
        self.network.width()
    }

    /// Maximum number of tokens per text, including the first and last one. The rest of a longer text is ignored.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// The vector of a text, of length 1.
    pub fn embed(&self, text: &str) -> Vec<f32> {
        self.embed_all(&[text]).pop().expect("one text has one vector")
    }

    /// The vectors of many texts, in order; each equals the result of `embed`. A batch costs less than single calls.
    pub fn embed_all(&self, texts: &[&str]) -> Vec<Vec<f32>> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut batch: Vec<Vec<u32>> = Vec::new();
        for text in texts {
            let tokens = self.tokens(text);
            let waiting: usize = batch.iter().map(Vec::len).sum();
            if waiting > 0 && waiting + tokens.len() > TOKENS_AT_ONCE {
                vectors.extend(self.network.encode_batch(&batch, self.level));
                batch.clear();
            }
            batch.push(tokens);
        }
        if !batch.is_empty() {
            vectors.extend(self.network.encode_batch(&batch, self.level));
        }
        vectors
    }

    /// The token ids of a text, as the encoder receives them.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text, self.max_tokens)
    }
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
