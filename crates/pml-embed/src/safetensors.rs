//! The safetensors format: a length, a JSON header that locates the tensors, and the tensors.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Error;

/// Maximum size of a header, in bytes; a larger one is refused before it is read.
const LONGEST_HEADER: u64 = 64 << 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TensorInfo {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl TensorInfo {
    /// Byte range, counted from the end of the header.
    pub(crate) fn range(&self) -> Range<usize> {
        self.data_offsets.0..self.data_offsets.1
    }
}

/// The parsed header of a file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SafetensorsHeader {
    #[serde(rename = "__metadata__", default)]
    pub(crate) metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(crate) tensors: BTreeMap<String, TensorInfo>,
}

impl SafetensorsHeader {
    /// Parses a header for `size` bytes of tensors.
    fn parse(json: &[u8], size: usize) -> Result<SafetensorsHeader, String> {
        let header: SafetensorsHeader =
            serde_json::from_slice(json).map_err(|error| format!("the header: {error}"))?;
        for (name, tensor) in &header.tensors {
            let Range { start, end } = tensor.range();
            let wanted =
                tensor.shape.iter().try_fold(width(&tensor.dtype)?, |size, side| size.checked_mul(*side));
            if start > end || end > size || wanted != Some(end - start) {
                return Err(format!(
                    "tensor `{name}` is not where the header says, the file may be cut short"
                ));
            }
        }
        Ok(header)
    }

    /// Parses the header of a file in memory. Also returns the offset of the tensors.
    pub(crate) fn parse_file(bytes: &[u8]) -> Result<(SafetensorsHeader, usize), String> {
        let short = || "it is cut short".to_owned();
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
        let (json, data) = rest.split_at_checked(length).ok_or_else(short)?;
        Ok((SafetensorsHeader::parse(json, data.len())?, 8 + length))
    }
}

/// Bytes per number of a data type.
fn width(dtype: &str) -> Result<usize, String> {
    match dtype {
        "I8" | "U8" | "BOOL" => Ok(1),
        "F16" | "BF16" | "I16" | "U16" => Ok(2),
        "F32" | "I32" | "U32" => Ok(4),
        "F64" | "I64" | "U64" => Ok(8),
        _ => Err(format!("numbers of type `{dtype}` are not known")),
    }
}

/// A safetensors file under construction, in memory.
#[derive(Debug, Default)]
pub(crate) struct TensorWriter {
    header: SafetensorsHeader,
    data: Vec<u8>,
}

impl TensorWriter {
    pub(crate) fn add(&mut self, name: &str, dtype: &str, shape: &[usize], bytes: &[u8]) {
        let start = self.data.len();
        self.data.extend_from_slice(bytes);
        let data_offsets = (start, self.data.len());
        let tensor = TensorInfo { dtype: dtype.to_owned(), shape: shape.to_vec(), data_offsets };
        self.header.tensors.insert(name.to_owned(), tensor);
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(crate) fn finish(mut self, key: &str, value: String) -> Vec<u8> {
        self.header.metadata.insert(key.to_owned(), value);
        let mut json = serde_json::to_vec(&self.header).expect("a header is text and numbers");
        // The tensors begin at a multiple of eight, as the format recommends.
        json.resize(json.len().next_multiple_of(8), b' ');
        // The tensors are large: they are moved behind the header in place instead of being copied to a new buffer.
        let front = (json.len() as u64).to_le_bytes().into_iter().chain(json);
        self.data.splice(0..0, front);
        self.data.shrink_to_fit();
        self.data
    }
}

/// A file of weights, read one tensor at a time.
pub(crate) struct WeightsFile {
    path: PathBuf,
    file: BufReader<File>,
    header: SafetensorsHeader,
    start: u64,
}

impl WeightsFile {
    pub(crate) fn open(path: &Path) -> Result<WeightsFile, Error> {
        let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
        let malformed = |reason: &str| Error::Malformed { path: path.to_owned(), reason: reason.to_owned() };
        let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
        let size = file.get_ref().metadata().map_err(unreadable)?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(|_| malformed("it is cut short"))?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST_HEADER || length + 8 > size {
            return Err(malformed("it does not begin with the header of a safetensors file"));
        }
        let mut json = vec![0; length as usize];
        file.read_exact(&mut json).map_err(unreadable)?;
        let header = SafetensorsHeader::parse(&json, (size - 8 - length) as usize)
            .map_err(|reason| malformed(&reason))?;
        Ok(WeightsFile { path: path.to_owned(), file, header, start: 8 + length })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.header.tensors.contains_key(name)
    }

    pub(crate) fn malformed(&self, reason: String) -> Error {
        Error::Malformed { path: self.path.clone(), reason }
    }

    /// All numbers of a tensor that must have this shape.
    pub(crate) fn floats(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let mut all = Vec::with_capacity(shape.iter().product());
        self.rows(name, shape, |row| all.extend_from_slice(row))?;
        Ok(all)
    }

    /// Calls `each` with the rows of a tensor that must have this shape, in order.
    pub(crate) fn rows(
        &mut self,
        name: &str,
        shape: &[usize],
        mut each: impl FnMut(&[f32]),
    ) -> Result<(), Error> {
        let Some(tensor) = self.header.tensors.get(name).cloned() else {
            return Err(self.malformed(format!("there is no tensor `{name}`")));
        };
        if tensor.shape != shape {
            let found = &tensor.shape;
            return Err(
                self.malformed(format!("tensor `{name}` is {found:?} and `config.json` wants {shape:?}"))
            );
        }
        let read = match tensor.dtype.as_str() {
            "F32" => |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            "BF16" => |bytes: &[u8]| f32::from_le_bytes([0, 0, bytes[0], bytes[1]]),
            "F16" => |bytes: &[u8]| half(u16::from_le_bytes([bytes[0], bytes[1]])),
            other => {
                let what = format!("weights of type `{other}` (tensor `{name}`)");
                return Err(Error::Unsupported { path: self.path.clone(), what });
            }
        };
        let columns = *shape.last().unwrap_or(&1);
        let size = width(&tensor.dtype).map_err(|reason| self.malformed(reason))?;
        let (mut bytes, mut row) = (vec![0; columns * size], Vec::with_capacity(columns));
        let unreadable = |source| Error::Unreadable { path: self.path.clone(), source };
        self.file.seek(SeekFrom::Start(self.start + tensor.range().start as u64)).map_err(unreadable)?;
        for _ in 0..shape.iter().product::<usize>() / columns.max(1) {
            self.file.read_exact(&mut bytes).map_err(unreadable)?;
            row.clear();
            row.extend(bytes.chunks_exact(size).map(read));
            if !row.iter().all(|number| number.is_finite()) {
                return Err(self.malformed(format!("tensor `{name}` holds what is not a number")));
            }
            each(&row);
        }
        Ok(())
    }
}

/// Converts an IEEE 754 half-precision number.
fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f32::from(bits & 0x3ff);
    sign * match (bits >> 10) & 0x1f {
        0 => fraction * 2.0_f32.powi(-24),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        exponent => (1024.0 + fraction) * 2.0_f32.powi(i32::from(exponent) - 25),
    }
}
