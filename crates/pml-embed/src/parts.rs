//! The tensors of a model, found by name.

use std::borrow::Cow;
use std::ops::Range;

use crate::safetensors::SafetensorsHeader;

/// The tensors of a model, by name, as ranges of the bytes they were read from.
#[derive(Debug)]
pub(crate) struct ModelTensors {
    pub(crate) bytes: Cow<'static, [u8]>,
    pub(crate) header: SafetensorsHeader,
    pub(crate) start: usize,
}

impl ModelTensors {
    /// Byte range of a tensor; an error when it is missing or has another type or shape.
    pub(crate) fn tensor_range(
        &self,
        name: &str,
        dtype: &str,
        shape: &[usize],
    ) -> Result<Range<usize>, String> {
        let tensor = self.header.tensors.get(name).ok_or_else(|| format!("there is no tensor `{name}`"))?;
        if tensor.dtype != dtype || tensor.shape != shape {
            let (found, sides) = (&tensor.dtype, &tensor.shape);
            return Err(format!("tensor `{name}` is {found} {sides:?} and should be {dtype} {shape:?}"));
        }
        let range = tensor.range();
        Ok(self.start + range.start..self.start + range.end)
    }

    /// The data of a U8 tensor.
    pub(crate) fn bytes(&self, name: &str) -> Result<&[u8], String> {
        Ok(&self.bytes[self.list(name)?])
    }

    /// The data of a U8 tensor as UTF-8 text.
    pub(crate) fn text(&self, name: &str) -> Result<Cow<'static, str>, String> {
        let range = self.list(name)?;
        let broken = |_| format!("`{name}` is not text");
        match &self.bytes {
            Cow::Borrowed(bytes) => Ok(Cow::Borrowed(std::str::from_utf8(&bytes[range]).map_err(broken)?)),
            Cow::Owned(bytes) => {
                Ok(Cow::Owned(std::str::from_utf8(&bytes[range]).map_err(broken)?.to_owned()))
            }
        }
    }

    /// The data of an F32 tensor.
    pub(crate) fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let bytes = &self.bytes[self.tensor_range(name, "F32", shape)?];
        Ok(bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect())
    }

    /// The data of an F64 tensor.
    pub(crate) fn doubles(&self, name: &str, length: usize) -> Result<Vec<f64>, String> {
        let bytes = &self.bytes[self.tensor_range(name, "F64", &[length])?];
        Ok(bytes.as_chunks::<8>().0.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }

    /// First dimension of a tensor.
    pub(crate) fn rows(&self, name: &str) -> Result<usize, String> {
        let tensor = self.header.tensors.get(name).and_then(|tensor| tensor.shape.first());
        tensor.copied().ok_or_else(|| format!("there is no tensor `{name}`"))
    }

    /// All bytes; the ranges of [`Self::tensor_range`] refer to them.
    pub(crate) fn into_bytes(self) -> Cow<'static, [u8]> {
        self.bytes
    }

    fn list(&self, name: &str) -> Result<Range<usize>, String> {
        self.tensor_range(name, "U8", &[self.rows(name)?])
    }
}
