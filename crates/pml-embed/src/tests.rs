//! Vectors are bit-identical at every SIMD level of the processor.

use crate::TransformerModel;
use crate::kernel::SimdLevel;

#[test]
fn every_level_gives_the_same_vectors() {
    let model = TransformerModel::embedded();
    let long = "what is longer than one block of tokens ".repeat(9);
    let texts: Vec<Vec<u32>> =
        ["", "hi", "read a file", "数据库 查询", &long].iter().map(|text| model.tokens(text)).collect();
    let expected = model.network.encode_batch(&texts, SimdLevel::Portable);
    for level in SimdLevel::all() {
        assert!(model.network.encode_batch(&texts, level) == expected, "{level:?}");
    }
}
