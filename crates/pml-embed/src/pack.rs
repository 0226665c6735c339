//! Packs a model directory into one byte string in the format of `container`.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::config::{self, ModelSettings};
use crate::container::{CONFIG, ModelConfig};
use crate::safetensors::{TensorWriter, WeightsFile};
use crate::{Error, code, linear};

/// Reads the model in `directory` and quantises its weights to eight bits.
///
/// The same files and the same name give the same bytes on every machine. The bytes are a safetensors file;
/// `container.rs` lists its tensors and settings.
pub fn pack(directory: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let settings = config::read_settings(directory)?;
    let mut source = WeightsFile::open(&directory.join("model.safetensors"))?;
    let prefix = ["", "bert.", "roberta.", "model."]
        .into_iter()
        .find(|prefix| source.has(&format!("{prefix}embeddings.word_embeddings.weight")))
        .ok_or_else(|| {
            source.malformed("there is no tensor `embeddings.word_embeddings.weight`".to_owned())
        })?;
    let mut packing =
        ModelPacker { settings: &settings, source: &mut source, prefix, writer: TensorWriter::default() };
    packing.tokenizer();
    packing.embeddings()?;
    for index in 0..settings.shape.num_hidden_layers {
        packing.layer(index)?;
    }
    Ok(finish(&settings, name, packing.writer))
}

fn finish(settings: &ModelSettings, name: &str, writer: TensorWriter) -> Vec<u8> {
    let shape = &settings.shape;
    let mut config = ModelConfig {
        id: String::new(),
        layers: shape.num_hidden_layers,
        heads: shape.num_attention_heads,
        width: shape.hidden_size,
        inner: shape.intermediate_size,
        norm_epsilon: shape.layer_norm_eps,
        max_tokens: settings.max_tokens,
        pooling: settings.pooling,
        tokenizer: settings.tokenizer.clone(),
    };
    let text = |config: &ModelConfig| serde_json::to_string(config).expect("settings are text and numbers");
    let digest = Sha256::new().chain_update(text(&config)).chain_update(writer.data()).finalize();
    let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    config.id = format!("{name}/int8/{digest}");
    writer.finish(CONFIG, text(&config))
}

struct ModelPacker<'a> {
    settings: &'a ModelSettings,
    source: &'a mut WeightsFile,
    /// Common prefix of all tensor names in the file.
    prefix: &'static str,
    writer: TensorWriter,
}

impl ModelPacker<'_> {
    fn tokenizer(&mut self) {
        let vocabulary = self.settings.pieces.join("\n");
        self.writer.add("vocabulary", "U8", &[vocabulary.len()], vocabulary.as_bytes());
        if !self.settings.scores.is_empty() {
            let scores = &self.settings.scores;
            let bytes: Vec<u8> = scores.iter().flat_map(|score| score.to_le_bytes()).collect();
            self.writer.add("scores", "F64", &[scores.len()], &bytes);
        }
        if !self.settings.charsmap.is_empty() {
            self.writer.add("charsmap", "U8", &[self.settings.charsmap.len()], &self.settings.charsmap);
        }
    }

    fn embeddings(&mut self) -> Result<(), Error> {
        let ModelSettings { shape, first_position, max_tokens, .. } = self.settings;
        let width = shape.hidden_size;
        let (mut codes, mut scales) = (Vec::with_capacity(shape.vocab_size * width), Vec::new());
        let name = format!("{}embeddings.word_embeddings.weight", self.prefix);
        self.source
            .rows(&name, &[shape.vocab_size, width], |row| scales.push(code::encode_row(row, &mut codes)))?;
        self.writer.add("words", "I8", &[shape.vocab_size, width], &codes);
        self.floats("words.scales", &[shape.vocab_size], &scales);

        let positions =
            self.read("embeddings.position_embeddings.weight", &[shape.max_position_embeddings, width])?;
        // All text has token type 0, so that row is added to every position.
        let types = self.read("embeddings.token_type_embeddings.weight", &[shape.type_vocab_size, width])?;
        let used = positions.chunks_exact(width).skip(*first_position).take(*max_tokens);
        let used: Vec<f32> =
            used.flat_map(|row| row.iter().zip(&types).map(|(place, kind)| place + kind)).collect();
        self.floats("positions", &[*max_tokens, width], &used);
        self.norm("embeddings.LayerNorm", "norm")
    }

    fn layer(&mut self, index: usize) -> Result<(), Error> {
        let (width, inner) = (self.settings.shape.hidden_size, self.settings.shape.intermediate_size);
        let from = |part: &str| format!("encoder.layer.{index}.{part}");
        let to = |part: &str| format!("layers.{index}.{part}");
        let heads = ["query", "key", "value"].map(|part| from(&format!("attention.self.{part}")));
        self.linear(&heads, &to("attention"), width, width)?;
        self.linear(&[from("attention.output.dense")], &to("merge"), width, width)?;
        self.norm(&from("attention.output.LayerNorm"), &to("norm1"))?;
        self.linear(&[from("intermediate.dense")], &to("widen"), inner, width)?;
        self.linear(&[from("output.dense")], &to("narrow"), width, inner)?;
        self.norm(&from("output.LayerNorm"), &to("norm2"))
    }

    /// Stacks matrices vertically and quantises the result.
    fn linear(&mut self, from: &[String], to: &str, rows: usize, columns: usize) -> Result<(), Error> {
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for name in from {
            weights.extend(self.read(&format!("{name}.weight"), &[rows, columns])?);
            biases.extend(self.read(&format!("{name}.bias"), &[rows])?);
        }
        let rows = rows * from.len();
        let rounded = linear::quantise_matrix(&weights, columns);
        self.writer.add(to, "I8", &[rows, columns], &rounded.codes);
        self.floats(&format!("{to}.scales"), &[rows], &rounded.scales);
        self.floats(&format!("{to}.columns"), &[columns], &rounded.columns);
        self.floats(&format!("{to}.bias"), &[rows], &biases);
        Ok(())
    }

    fn norm(&mut self, from: &str, to: &str) -> Result<(), Error> {
        for part in ["weight", "bias"] {
            let numbers = self.read(&format!("{from}.{part}"), &[self.settings.shape.hidden_size])?;
            self.floats(&format!("{to}.{part}"), &[numbers.len()], &numbers);
        }
        Ok(())
    }

    fn read(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        self.source.floats(&format!("{}{name}", self.prefix), shape)
    }

    fn floats(&mut self, name: &str, shape: &[usize], numbers: &[f32]) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.writer.add(name, "F32", shape, &bytes);
    }
}
